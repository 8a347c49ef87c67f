"""Says what a record of the cluster's metadata log holds, for `mainstem dump-log`.

A record that is not understood is shown as bytes; a newer version of the log is no reason to stop.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mainstem.cli.dump_log.entry import Entry
from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.uuids import uuid_to_text

_UUID_BYTES = 16


def describe_metadata_record(value: bytes | None) -> Entry:
    """The name of the record and its fields, or its bytes and why they could not be read."""
    from mainstem.cluster.records.framing import decode_record  # large, and needed for this one log only

    if value is None:
        return {"value": None}
    try:
        record = decode_record(value)
    except ProtocolError as error:
        return {"value": value.hex(), "problem": str(error)}
    return {"record": type(record).__name__, "fields": _plain(record)}


def _plain(value: Any) -> Any:
    """The value as JSON knows it: structs as objects, ids in Kafka's spelling, other bytes in hex."""
    if isinstance(value, Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return uuid_to_text(value) if len(value) == _UUID_BYTES else value.hex()
    return value
