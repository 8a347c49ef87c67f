"""Transactions in a log: who may begin and end one, what is stable, what was aborted, and what survives."""

import errno
import os
from pathlib import Path

import pytest

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import TRANSACTIONAL_MASK
from mainstem.storage.log import Log, Origin
from tests.storage.log_helpers import NOW_MS, append, batch, files, idempotent, open_log, read_batches
from tests.storage.transaction_helpers import append_in_transaction, end, read_committed
from tests.support.failing_files import FailingFiles


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path)


def code_of(refused: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return refused.value.code


def stable(log: Log) -> int:
    return log.last_stable_offset(log.log_end_offset)


# ---- the last stable offset


def test_an_open_transaction_holds_the_last_stable_offset_back(log: Log) -> None:
    append(log, 3)
    assert (stable(log), log.first_unstable_offset) == (3, None)
    append_in_transaction(log, 1)
    append(log, 2)
    assert (stable(log), log.first_unstable_offset) == (3, 3)
    end(log, 1, commit=True)
    assert stable(log) == log.log_end_offset == 7
    assert log.first_unstable_offset is None


def test_the_oldest_of_several_transactions_counts(log: Log) -> None:
    for producer in (1, 2, 3):
        append_in_transaction(log, producer)
    end(log, 2, commit=True)
    assert stable(log) == 0
    end(log, 1, commit=False)
    assert stable(log) == 2
    end(log, 3, commit=True)
    assert stable(log) == 6


def test_a_marker_counts_when_the_high_watermark_has_passed_it(log: Log) -> None:
    append_in_transaction(log, 1)
    end(log, 1, commit=True)
    assert log.last_stable_offset(1) == 0
    assert log.first_unstable_offset == 0
    log.producers.state.forget_completed(1)
    assert log.first_unstable_offset == 0
    log.producers.state.forget_completed(2)
    assert log.first_unstable_offset is None
    assert log.last_stable_offset(2) == 2


def test_the_last_stable_offset_is_never_beyond_the_high_watermark(log: Log) -> None:
    append(log, 5)
    append_in_transaction(log, 1)
    assert log.last_stable_offset(2) == 2


def test_an_open_transaction_from_before_the_log_start_counts_from_there(log: Log) -> None:
    append_in_transaction(log, 1, count=4)
    append_in_transaction(log, 1)
    log.advance_log_start_offset(2, 5)
    assert (stable(log), log.first_unstable_offset) == (2, 2)


# ---- beginning


def refused_append(log: Log, data: memoryview, **options: object) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(data, 0, NOW_MS, **options)  # type: ignore[arg-type]
    return code_of(refused)


def in_transaction(sequence: int = 0, *, producer: int = 1, epoch: int = 0) -> memoryview:
    return batch(
        producer_id=producer, producer_epoch=epoch, base_sequence=sequence, attributes=TRANSACTIONAL_MASK
    )


def test_a_transaction_begins_with_a_verified_batch_only(log: Log) -> None:
    assert refused_append(log, in_transaction()) is ErrorCode.INVALID_TXN_STATE
    guard = log.producers.needs_verification(1, 0, 0)
    assert guard is not None
    assert log.producers.needs_verification(1, 0, 1) is guard, "batches that wait together show the same one"
    log.append_as_leader(in_transaction(), 0, NOW_MS, guard=guard)
    assert log.producers.needs_verification(1, 0, 1) is None, "it is open"
    log.append_as_leader(in_transaction(1), 0, NOW_MS)
    assert log.producers.needs_verification(1, 1, 0) is not None, "not in this epoch"


def test_a_marker_makes_a_guard_void(log: Log) -> None:
    guard = log.producers.needs_verification(1, 0, 0)
    log.append_marker(1, 0, 0, False, 0, NOW_MS, transaction_version=1)
    assert refused_append(log, in_transaction(), guard=guard) is ErrorCode.INVALID_TXN_STATE
    later = log.producers.needs_verification(1, 0, 0)
    assert later is not guard
    assert refused_append(log, in_transaction(), guard=guard) is ErrorCode.INVALID_TXN_STATE
    log.append_as_leader(in_transaction(), 0, NOW_MS, guard=later)


def test_a_guard_of_another_producer_is_worth_nothing(log: Log) -> None:
    log.producers.needs_verification(1, 0, 0)
    other = log.producers.needs_verification(2, 0, 0)
    assert refused_append(log, in_transaction(), guard=other) is ErrorCode.INVALID_TXN_STATE


def test_without_verification_a_transaction_begins_with_any_batch(log: Log) -> None:
    log.environment.verifies_transactions = False
    log.append_as_leader(in_transaction(), 0, NOW_MS)
    assert stable(log) == 0


def test_a_repeated_batch_is_known_after_its_transaction_has_ended(log: Log) -> None:
    append_in_transaction(log, 1)
    log.append_marker(1, 0, 0, True, 0, NOW_MS, transaction_version=1)
    assert log.append_as_leader(in_transaction(), 0, NOW_MS).duplicate


def test_batches_that_wait_for_verification_do_not_overtake(log: Log) -> None:
    guard = log.producers.needs_verification(1, 0, 5)
    assert refused_append(log, in_transaction(6), guard=guard) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.producers.needs_verification(1, 0, 3) is guard
    assert refused_append(log, in_transaction(5), guard=guard) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.producers.needs_verification(1, 1, 7) is guard, "a new epoch counts anew"
    log.append_as_leader(in_transaction(7, epoch=1), 0, NOW_MS, guard=guard)


def test_a_client_that_bumps_epochs_begins_with_zero(log: Log) -> None:
    guard = log.producers.needs_verification(1, 0, 3, supports_epoch_bump=True)
    assert refused_append(log, in_transaction(3), guard=guard) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.append_as_leader(in_transaction(0), 0, NOW_MS, guard=guard)


def test_an_old_epoch_is_refused_before_anybody_is_asked(log: Log) -> None:
    append_in_transaction(log, 1, epoch=4)
    with pytest.raises(KafkaError) as refused:
        log.producers.needs_verification(1, 3, 0)
    assert code_of(refused) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused_append(log, in_transaction(epoch=3)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_batch_outside_the_open_transaction_is_refused(log: Log) -> None:
    append_in_transaction(log, 77)
    assert refused_append(log, idempotent(1)) is ErrorCode.INVALID_TXN_STATE
    end(log, 77, commit=True)
    log.append_as_leader(idempotent(0, epoch=1), 0, NOW_MS)


def test_a_coordinators_batch_has_no_sequence_but_an_epoch_and_perhaps_a_guard(log: Log) -> None:
    def offsets(epoch: int) -> memoryview:
        return batch(producer_id=1, producer_epoch=epoch, attributes=TRANSACTIONAL_MASK)

    guard = log.producers.needs_verification(1, 2, -1)
    log.append_as_leader(offsets(2), 0, NOW_MS, origin=Origin.COORDINATOR, guard=guard)
    log.append_as_leader(offsets(2), 0, NOW_MS, origin=Origin.COORDINATOR)
    assert refused_append(log, offsets(1), origin=Origin.COORDINATOR) is ErrorCode.INVALID_PRODUCER_EPOCH
    void = log.producers.needs_verification(2, 0, -1)
    log.append_marker(2, 0, 0, False, 0, NOW_MS)
    late = batch(producer_id=2, producer_epoch=0, attributes=TRANSACTIONAL_MASK)
    assert refused_append(log, late, origin=Origin.COORDINATOR, guard=void) is ErrorCode.INVALID_TXN_STATE
    assert stable(log) == 0


def test_a_guard_that_nobody_uses_is_forgotten_some_day(log: Log) -> None:
    log.producers.needs_verification(1, 0, 0)
    log.producers.state.remove_expired(NOW_MS, 1000)
    log.producers.state.remove_expired(NOW_MS + 999, 1000)
    assert list(log.producers.state.guards) == [1]
    log.producers.state.remove_expired(NOW_MS + 1000, 1000)
    assert log.producers.state.guards == {}


# ---- ending


def marker_refusal(log: Log, producer: int, epoch: int, coordinator: int, version: int) -> ErrorCode:
    end_offset = log.log_end_offset
    with pytest.raises(KafkaError) as refused:
        log.append_marker(producer, epoch, coordinator, True, 0, NOW_MS, transaction_version=version)
    assert log.log_end_offset == end_offset
    return code_of(refused)


def test_a_marker_of_an_older_epoch_is_refused(log: Log) -> None:
    append_in_transaction(log, 1, epoch=5)
    assert marker_refusal(log, 1, 4, 0, 1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert marker_refusal(log, 1, 4, 0, 2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert marker_refusal(log, 1, 5, 0, 2) is ErrorCode.INVALID_PRODUCER_EPOCH, "version 2 bumps the epoch"
    log.append_marker(1, 5, 0, True, 0, NOW_MS, transaction_version=1)
    assert stable(log) == 2


def test_the_same_marker_again_is_written_again(log: Log) -> None:
    append_in_transaction(log, 1)
    log.append_marker(1, 1, 0, False, 0, NOW_MS)
    assert log.append_marker(1, 1, 0, False, 0, NOW_MS).last_offset == 2
    assert log.aborted_transactions(0, 3) == [(1, 0)]


def test_a_marker_of_a_replaced_coordinator_is_refused(log: Log) -> None:
    append_in_transaction(log, 1)
    log.append_marker(1, 1, 7, True, 0, NOW_MS)
    assert marker_refusal(log, 1, 2, 6, 2) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    log.append_marker(1, 2, 7, True, 0, NOW_MS)


def test_a_marker_without_a_transaction_fences_all_the_same(log: Log) -> None:
    log.append_marker(1, 3, 0, False, 0, NOW_MS)
    assert log.aborted_transactions(0, 1) == []
    assert files(log, ".txnindex") == []
    assert refused_append(log, in_transaction(epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    (producer,) = log.producers.active()
    assert (producer.producer_id, producer.producer_epoch, producer.coordinator_epoch) == (1, 3, 0)
    assert (producer.last_sequence, producer.current_txn_start_offset) == (-1, -1)


def test_a_marker_takes_the_brokers_time_where_the_topic_does(tmp_path: Path) -> None:
    log = open_log(tmp_path, message_timestamp_type="LogAppendTime")
    log.append_marker(1, 0, 0, True, 0, NOW_MS + 5)
    (header,) = read_batches(log)
    assert header.attributes & 0x08
    assert header.max_timestamp == NOW_MS + 5


# ---- what was aborted


def test_aborted_records_are_left_out(log: Log) -> None:
    append_in_transaction(log, 1)
    append(log)
    append_in_transaction(log, 2)
    append_in_transaction(log, 1)
    end(log, 1, commit=False)
    append_in_transaction(log, 1)
    end(log, 2, commit=True)
    end(log, 1, commit=True)
    assert log.aborted_transactions(0, 8) == [(1, 0)]
    for max_bytes in (1, 200, 1000):
        assert read_committed(log, 8, 0, max_bytes) == [1, 2, 5]
        assert read_committed(log, 8, 3, max_bytes) == [5]


def test_an_abort_is_indexed_where_its_marker_is(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_in_transaction(log, 1)
    log.roll(NOW_MS)
    end(log, 1, commit=False)
    log.roll(NOW_MS)
    append(log)
    assert [path.name for path in files(log, ".txnindex")] == ["00000000000000000001.txnindex"]
    assert log.aborted_transactions(0, 1) == [(1, 0)]
    assert log.aborted_transactions(2, 3) == []


def test_an_abort_that_cannot_be_indexed_did_not_happen(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_in_transaction(log, 1)
    (tmp_path / "t-0" / "00000000000000000000.txnindex").mkdir()
    with pytest.raises(KafkaError) as refused:
        end(log, 1, commit=False)
    assert code_of(refused) is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.log_end_offset == 1
    assert stable(log) == 0


def test_a_marker_that_cannot_be_written_leaves_no_entry(tmp_path: Path) -> None:
    disk = FailingFiles()
    log = open_log(tmp_path, files=disk)
    append_in_transaction(log, 1)

    def full(fd: int, data: memoryview, position: int) -> int:
        if os.readlink(f"/proc/self/fd/{fd}").endswith(".log"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.pwrite(fd, data, position)

    with disk.exchanged(pwrite=full), pytest.raises(KafkaError) as refused:
        end(log, 1, commit=False)
    assert code_of(refused) is ErrorCode.KAFKA_STORAGE_ERROR
    assert files(log, ".txnindex") == []
    assert stable(log) == 0
    end(log, 1, commit=False)
    assert log.aborted_transactions(0, 2) == [(1, 0)]


def test_a_follower_indexes_what_its_leader_aborted(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "leader"), open_log(tmp_path / "follower", segment_bytes=200)
    append_in_transaction(leader, 1)
    append_in_transaction(leader, 2)
    end(leader, 1, commit=False)
    append(leader)
    end(leader, 2, commit=False)
    data = leader.read(0, 10**6).records
    assert data is not None
    follower.append_as_follower(bytearray(data.read()), NOW_MS)
    assert len(follower.segments) > 1
    assert follower.aborted_transactions(0, 5) == leader.aborted_transactions(0, 5) == [(1, 0), (2, 1)]
    assert follower.last_stable_offset(4) == 1


# ---- cuts, stops and crashes


def two_aborts(tmp_path: Path) -> Log:
    log = open_log(tmp_path)
    append_in_transaction(log, 1)
    append_in_transaction(log, 2)
    end(log, 1, commit=False)  # offset 2
    log.roll(NOW_MS)
    append(log)
    end(log, 2, commit=False)  # offset 4
    return log


@pytest.mark.parametrize(
    ("offset", "aborted", "unstable"),
    [(5, [(1, 0), (2, 1)], None), (4, [(1, 0)], 1), (3, [(1, 0)], 1), (2, [], 0), (1, [], 0), (0, [], None)],
)
def test_a_cut_opens_the_transactions_whose_markers_it_takes(
    tmp_path: Path, offset: int, aborted: list[tuple[int, int]], unstable: int | None
) -> None:
    log = two_aborts(tmp_path)
    log.truncate_to(offset, NOW_MS)
    log.producers.state.forget_completed(offset)
    assert log.aborted_transactions(0, 10) == aborted
    assert log.first_unstable_offset == unstable
    log.close(clean=False)
    again = open_log(tmp_path)
    assert again.aborted_transactions(0, 10) == aborted
    again.producers.state.forget_completed(offset)
    assert again.first_unstable_offset == unstable


def test_emptying_a_log_forgets_its_transactions(tmp_path: Path) -> None:
    log = two_aborts(tmp_path)
    append_in_transaction(log, 3)
    log.truncate_fully_and_start_at(100, NOW_MS)
    assert (log.aborted_transactions(0, 200), log.first_unstable_offset) == ([], None)
    assert files(log, ".txnindex") == []


def test_an_open_transaction_is_open_after_a_restart(tmp_path: Path) -> None:
    log = two_aborts(tmp_path)
    append_in_transaction(log, 3)
    log.close()
    again = open_log(tmp_path, clean=True, recovery_point=6)
    assert again.last_stable_offset(6) == 5
    assert again.aborted_transactions(0, 6) == [(1, 0), (2, 1)]
    assert again.producers.needs_verification(3, 0, 1) is None
    end(again, 3, commit=False)
    assert again.aborted_transactions(0, 7) == [(1, 0), (2, 1), (3, 5)]


@pytest.mark.parametrize("recovery_point", [0, 4])
def test_recovery_makes_the_indexes_again(tmp_path: Path, recovery_point: int) -> None:
    log = two_aborts(tmp_path)
    log.close(clean=False)
    contents = {path.name: path.read_bytes() for path in files(log, ".txnindex")}
    assert len(contents) == 2
    for path in (tmp_path / "t-0").iterdir():
        if path.suffix != ".log":
            path.unlink()
    again = open_log(tmp_path, recovery_point=recovery_point)
    assert {path.name: path.read_bytes() for path in files(again, ".txnindex")} == contents
    assert again.aborted_transactions(0, 5) == [(1, 0), (2, 1)]
    assert again.last_stable_offset(5) == 5


def test_recovery_takes_back_an_entry_whose_marker_was_lost(tmp_path: Path) -> None:
    log = two_aborts(tmp_path)
    log.close(clean=False)
    segment = log.segments.active
    os.truncate(segment.path(".log"), segment.size - 1)
    again = open_log(tmp_path)
    assert again.log_end_offset == 4
    assert again.aborted_transactions(0, 10) == [(1, 0)]
    assert again.last_stable_offset(4) == 1


@pytest.mark.parametrize("damage", [b"", b"\0\1", b"\0" * 34], ids=["gone", "torn", "zeros"])
def test_a_damaged_index_is_made_again_when_it_is_needed(tmp_path: Path, damage: bytes) -> None:
    log = two_aborts(tmp_path)
    log.close()
    again = open_log(tmp_path, clean=True, recovery_point=5)
    for path in files(again, ".txnindex"):
        path.write_bytes(damage) if damage else path.unlink()
    assert again.aborted_transactions(0, 5) == [(1, 0), (2, 1)]
    append_in_transaction(again, 3)
    end(again, 3, commit=False)
    assert again.aborted_transactions(0, 7) == [(1, 0), (2, 1), (3, 5)]


def test_an_index_of_a_damaged_segment_cannot_be_made_again(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_in_transaction(log, 1)
    end(log, 1, commit=False)
    files(log, ".txnindex")[0].unlink()
    with open(files(log, ".log")[0], "r+b") as file:
        file.seek(8)
        file.write(b"\0\0\0\1")  # the length of the first batch
    with pytest.raises(KafkaError) as refused:
        log.aborted_transactions(0, 2)
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE


def test_an_index_without_its_log_is_removed(tmp_path: Path) -> None:
    log = two_aborts(tmp_path)
    log.close(clean=False)
    stray = tmp_path / "t-0" / "00000000000000000099.txnindex"
    stray.write_bytes(b"x" * 34)
    open_log(tmp_path)
    assert not stray.exists()


def test_retention_takes_the_index_with_its_segment(tmp_path: Path) -> None:
    log = two_aborts(tmp_path)
    log.advance_log_start_offset(4, 5)
    assert log.delete_old_segments(NOW_MS, 5) == 1
    assert [path.name for path in files(log, ".txnindex")] == ["00000000000000000003.txnindex"]
    assert log.aborted_transactions(4, 5) == [(2, 1)], "the rest of it is still there to be left out"


class SyncedPaths(FailingFiles):
    """A disk that notes what is synced."""

    def __init__(self) -> None:
        super().__init__(fsync=self._note)
        self.paths: list[str] = []

    def _note(self, fd: int) -> None:
        self.paths.append(os.readlink(f"/proc/self/fd/{fd}"))


def test_a_flush_makes_the_index_durable(tmp_path: Path) -> None:
    synced = SyncedPaths()
    log = open_log(tmp_path, files=synced)
    append_in_transaction(log, 1)
    end(log, 1, commit=False)
    log.flush()
    assert str(files(log, ".txnindex")[0]) in synced.paths


def test_a_clean_close_makes_the_producers_durable(tmp_path: Path) -> None:
    synced = SyncedPaths()
    log = open_log(tmp_path, files=synced)
    append_in_transaction(log, 1)
    log.close()
    assert {str(files(log, ".snapshot")[0]), log.directory} <= set(synced.paths)


def test_a_log_that_is_emptied_has_no_open_transaction(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_in_transaction(log, 1)
    log.roll(NOW_MS)
    append(log)
    log.advance_log_start_offset(1, 2)
    assert log.delete_old_segments(NOW_MS, 2) == 1
    log.truncate_fully_and_start_at(1, NOW_MS)
    append(log)
    assert log.producers.active() == []
    assert stable(log) == log.log_end_offset == 2


def test_a_follower_makes_a_damaged_index_again(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "leader"), open_log(tmp_path / "follower")

    def abort_and_copy() -> None:
        append_in_transaction(leader, 1)
        end(leader, 1, commit=False)
        records = leader.read(follower.log_end_offset, 10**6).records
        assert records is not None
        follower.append_as_follower(bytearray(records.read()), NOW_MS)

    abort_and_copy()
    follower.close()
    follower = open_log(tmp_path / "follower", clean=True, recovery_point=follower.log_end_offset)
    (index,) = files(follower, ".txnindex")
    index.write_bytes(index.read_bytes()[:20])
    abort_and_copy()
    assert follower.aborted_transactions(0, 4) == leader.aborted_transactions(0, 4) != []
