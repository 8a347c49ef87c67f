"""Control records: what brokers write into a log for themselves (transaction markers, leader changes, ...).

Only the bytes of their keys and values are made and read here; who writes them, and when, is decided
elsewhere.
"""

import struct
from enum import IntEnum

from mainstem.records.batch import CONTROL_MASK, TRANSACTIONAL_MASK
from mainstem.records.record import Record, build_batch

_KEY = struct.Struct(">hh")
_END_TXN = struct.Struct(">hi")


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


def end_txn_value(coordinator_epoch: int) -> bytes:
    """The value of a COMMIT or ABORT marker."""
    return _END_TXN.pack(0, coordinator_epoch)


def coordinator_epoch_of(value: bytes | None) -> int:
    """The coordinator epoch in a marker's value; -1 when it is not there."""
    if value is None or len(value) < _END_TXN.size:
        return -1
    return int(_END_TXN.unpack_from(value)[1])


def build_control_batch(
    control_type: ControlType,
    value: bytes,
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    timestamp_ms: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> bytearray:
    """A batch with one control record. Transaction markers are also marked transactional."""
    attributes = CONTROL_MASK
    if control_type in (ControlType.ABORT, ControlType.COMMIT):
        attributes |= TRANSACTIONAL_MASK
    return build_batch(
        [Record(0, timestamp_ms, control_key(control_type), value, ())],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
