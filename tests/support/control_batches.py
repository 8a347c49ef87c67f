"""Control batches as the records in them give them."""

import struct

from mainstem.records.batch import CONTROL_MASK, TRANSACTIONAL_MASK
from mainstem.records.control import ControlType, control_key
from mainstem.records.record import Record, build_batch


def end_txn_value(coordinator_epoch: int) -> bytes:
    """The value of a COMMIT or ABORT marker."""
    return struct.pack(">hi", 0, coordinator_epoch)


def build_control_batch(
    control_type: ControlType,
    value: bytes,
    *,
    base_offset: int = 0,
    timestamp_ms: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> bytearray:
    """A batch with one control record. Transaction markers are also marked transactional."""
    is_marker = control_type in (ControlType.ABORT, ControlType.COMMIT)
    return build_batch(
        [Record(0, timestamp_ms, control_key(control_type), value, ())],
        base_offset=base_offset,
        attributes=CONTROL_MASK | TRANSACTIONAL_MASK if is_marker else CONTROL_MASK,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
