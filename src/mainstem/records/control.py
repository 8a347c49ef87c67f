"""Control records: what brokers write into a log for themselves (transaction markers, leader changes, ...).

Only the bytes of their keys and values are made and read here; who writes them, and when, is decided
elsewhere.
"""

import struct
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from mainstem.records.batch import (
    CONTROL_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_MASK,
    Buffer,
    set_crc,
)
from mainstem.records.record import RecordError, iter_records

_KEY = struct.Struct(">hh")
_END_TXN = struct.Struct(">hi")
# The one record of a transaction's marker, field by field: length, attributes, timestamp and offset deltas,
# key length, key version and type, value length, value version and coordinator epoch, number of headers.
# Lengths are zigzag varints of one byte.
_MARKER_RECORD = struct.Struct(">bbbbbhhbhib")
_MARKER_SIZE = HEADER_SIZE + _MARKER_RECORD.size


class ControlType(IntEnum):
    """The kind of a control record, from its key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def control_key(control_type: ControlType) -> bytes:
    """Key version 0 followed by the type."""
    return _KEY.pack(0, control_type)


def control_type_of(key: bytes | None) -> ControlType | None:
    """The type in a control record's key, or None for a key that is malformed or of a later kind."""
    if key is None or len(key) < _KEY.size:
        return None
    version, code = _KEY.unpack_from(key)
    if version < 0 or code not in ControlType._value2member_map_:
        return None
    return ControlType(code)


class EndTxnMarker(NamedTuple):
    """How a transaction ended, and who says so."""

    commit: bool
    coordinator_epoch: int


def read_marker(batch: Buffer) -> EndTxnMarker | None:
    """What the control batch at the front of `batch` says about its producer's transaction; None when it is
    no marker, or compaction has left nothing of it.
    """
    try:
        record = next(iter_records(batch), None)
    except RecordError:
        return None
    if record is None or record.value is None or len(record.value) < _END_TXN.size:
        return None
    control_type = control_type_of(record.key)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    return EndTxnMarker(control_type == ControlType.COMMIT, _END_TXN.unpack_from(record.value)[1])


def build_marker(
    producer_id: int, producer_epoch: int, coordinator_epoch: int, commit: bool, timestamp_ms: int
) -> bytearray:
    """The control batch that ends a transaction, once for each of its partitions."""
    return bytearray(_marker_batch(producer_id, producer_epoch, coordinator_epoch, commit, timestamp_ms))


@lru_cache(maxsize=1)
def _marker_batch(
    producer_id: int, producer_epoch: int, coordinator_epoch: int, commit: bool, timestamp_ms: int
) -> bytearray:
    """Put together in two steps and not by way of records. The same one goes into all partitions of the
    transaction, so that the last one is kept.
    """
    batch = bytearray(_MARKER_SIZE)
    HEADER.pack_into(
        batch, 0, 0, _MARKER_SIZE - LOG_OVERHEAD, NO_LEADER_EPOCH, MAGIC, 0,
        CONTROL_MASK | TRANSACTIONAL_MASK, 0, timestamp_ms, timestamp_ms,
        producer_id, producer_epoch, NO_SEQUENCE, 1,
    )  # fmt: skip
    _MARKER_RECORD.pack_into(
        batch, HEADER_SIZE, (_MARKER_RECORD.size - 1) * 2, 0, 0, 0, _KEY.size * 2, 0,
        ControlType.COMMIT if commit else ControlType.ABORT, _END_TXN.size * 2, 0, coordinator_epoch, 0,
    )  # fmt: skip
    set_crc(batch)
    return batch
