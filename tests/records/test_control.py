"""Control batches are marked as such and say what they are."""

import pytest

from mainstem.records.batch import HEADER_SIZE, crc_is_valid, read_header
from mainstem.records.control import (
    ControlType,
    EndTxnMarker,
    build_marker,
    control_key,
    control_type_of,
    read_marker,
)
from mainstem.records.record import Record, assemble, build_batch
from tests.support.control_batches import build_control_batch, end_txn_value


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_transaction_marker_carries_type_and_coordinator_epoch(commit: bool) -> None:
    data = build_marker(9, 1, 12, commit, 5)
    header = read_header(data)
    assert crc_is_valid(data)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 1, -1)
    assert read_marker(data) == EndTxnMarker(commit, 12)


def test_a_marker_built_in_one_step_is_the_batch_of_its_record() -> None:
    for kind in (ControlType.ABORT, ControlType.COMMIT):
        record_by_record = build_control_batch(
            kind, end_txn_value(7), timestamp_ms=123, producer_id=2**40, producer_epoch=32766
        )
        assert build_marker(2**40, 32766, 7, kind is ControlType.COMMIT, 123) == record_by_record


def test_only_a_batch_with_a_marker_in_it_is_one() -> None:
    marker = build_marker(9, 1, 12, True, 5)
    emptied = assemble(read_header(marker)._replace(record_count=0), b"")
    assert read_marker(emptied) is None, "compaction leaves the header of a producer's last batch"
    assert read_marker(marker[: HEADER_SIZE + 3]) is None
    assert read_marker(build_control_batch(ControlType.LEADER_CHANGE, b"\0" * 6, timestamp_ms=5)) is None
    assert read_marker(build_batch([Record(0, 5, control_key(ControlType.COMMIT), b"\0")])) is None
    assert read_marker(build_batch([Record(0, 5, None, None)])) is None


def test_a_leader_change_is_not_transactional() -> None:
    header = read_header(build_control_batch(ControlType.LEADER_CHANGE, b"", timestamp_ms=5))
    assert header.is_control
    assert not header.is_transactional


def test_keys_of_a_later_kind_or_cut_off_have_no_type() -> None:
    assert control_type_of(control_key(ControlType.ABORT)) is ControlType.ABORT
    assert control_type_of(b"\x00\x00\x00\x63") is None
    assert control_type_of(b"\x00") is None
    assert control_type_of(None) is None
