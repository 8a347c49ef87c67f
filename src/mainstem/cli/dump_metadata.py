"""Says in words what a record of the cluster's metadata log holds, for `mainstem dump-log`."""

from __future__ import annotations

from mainstem.cli.dump_entry import Entry


def describe_metadata_record(value: bytes | None) -> Entry:
    """x"""
    return {"value": value.hex() if value else None}
