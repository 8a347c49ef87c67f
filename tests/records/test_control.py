"""Control batches are marked as such and say what they are."""

from mainstem.records.batch import crc_is_valid, read_header
from mainstem.records.control import (
    ControlType,
    build_control_batch,
    control_key,
    control_type_of,
    coordinator_epoch_of,
    end_txn_value,
)
from mainstem.records.record import iter_records


def test_an_end_transaction_marker_carries_type_and_coordinator_epoch() -> None:
    data = build_control_batch(
        ControlType.COMMIT, end_txn_value(12), timestamp_ms=5, producer_id=9, producer_epoch=1
    )
    header = read_header(data)
    assert crc_is_valid(data)
    assert header.is_control
    assert header.is_transactional
    (record,) = iter_records(data)
    assert control_type_of(record.key) is ControlType.COMMIT
    assert coordinator_epoch_of(record.value) == 12


def test_a_leader_change_is_not_transactional() -> None:
    header = read_header(build_control_batch(ControlType.LEADER_CHANGE, b"", timestamp_ms=5))
    assert header.is_control
    assert not header.is_transactional


def test_keys_of_a_later_kind_or_cut_off_have_no_type() -> None:
    assert control_type_of(control_key(ControlType.ABORT)) is ControlType.ABORT
    assert control_type_of(b"\x00\x00\x00\x63") is None
    assert control_type_of(b"\x00") is None
    assert control_type_of(None) is None
    assert coordinator_epoch_of(None) == -1
