"""Idempotent producers: which batch is next, which a repetition, which refused; and the snapshot file."""

import pytest

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import CONTROL_MASK, TRANSACTIONAL_MASK, BatchHeader
from mainstem.records.control import EndTxnMarker
from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.producers.producer_state import (
    BatchMetadata,
    ProducerState,
    SnapshotError,
    load_snapshot,
    snapshot_offsets,
    write_snapshot,
)

LAST_SEQUENCE = 2**31 - 1


def header(
    offset: int, sequence: int, count: int = 1, *, epoch: int = 0, attributes: int = 0, timestamp: int = 1000
) -> BatchHeader:
    return BatchHeader(
        offset, 100, 0, 2, 0, attributes, count - 1, timestamp, timestamp, 5, epoch, sequence, count
    )


def state_of(*headers: BatchHeader) -> ProducerState:
    state = ProducerState()
    for entry in headers:
        state.record(entry)
    return state


def check(state: ProducerState, epoch: int, first: int, last: int) -> BatchMetadata | None:
    """As the log does: None for a batch that may be appended, or the one that it repeats."""
    batch = header(0, first, last - first + 1 if last >= first else last - first + 2**31 + 1, epoch=epoch)
    found = state.duplicate_of(batch)
    if found is None:
        state.check_epoch(5, epoch, "t-0")
        state.check_sequence(batch, "t-0")
    return found


def refusal(state: ProducerState, epoch: int, first: int, last: int) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        check(state, epoch, first, last)
    return refused.value.code


def test_an_unknown_producer_may_start_at_any_sequence() -> None:
    assert check(ProducerState(), 3, 1234, 1240) is None


def test_the_next_sequence_follows_the_last() -> None:
    state = state_of(header(0, 0, 10))
    assert check(state, 0, 10, 12) is None
    assert refusal(state, 0, 11, 12) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(state, 0, 5, 12) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_last_five_batches_are_recognised() -> None:
    state = state_of(*(header(i * 10, i * 10, 10) for i in range(7)))
    for number in range(2, 7):
        found = check(state, 0, number * 10, number * 10 + 9)
        assert found is not None
        assert found[2] == number * 10 + 9
    assert refusal(state, 0, 10, 19) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(state, 0, 20, 25) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_wrap_to_zero() -> None:
    state = state_of(header(0, LAST_SEQUENCE - 1, 2))
    assert check(state, 0, 0, 4) is None
    state.record(header(2, 0, 5))
    wrapping = state_of(header(0, LAST_SEQUENCE, 4))
    assert wrapping.entries[5].last_sequence == 2
    assert check(wrapping, 0, 3, 3) is None
    assert check(wrapping, 0, LAST_SEQUENCE, 2) is not None


def test_an_older_epoch_is_fenced() -> None:
    state = state_of(header(0, 0, epoch=4))
    assert refusal(state, 3, 1, 1) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_newer_epoch_begins_with_zero_and_forgets_the_old_batches() -> None:
    state = state_of(header(0, 0, 10, epoch=4))
    assert refusal(state, 5, 10, 10) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert check(state, 5, 0, 0) is None
    state.record(header(10, 0, epoch=5))
    assert len(state.entries[5].batches) == 1


def test_silent_producers_expire_unless_a_transaction_is_open() -> None:
    state = state_of(header(0, 0, timestamp=1000))
    assert state.remove_expired(now_ms=1999, expiration_ms=1000) == 0
    assert state.remove_expired(now_ms=2000, expiration_ms=1000) == 1
    assert state.entries == {}
    open_transaction = state_of(header(0, 0, attributes=TRANSACTIONAL_MASK, timestamp=1000))
    assert open_transaction.remove_expired(now_ms=9000, expiration_ms=1000) == 0


def test_a_marker_ends_the_transaction_and_keeps_the_sequence() -> None:
    state = state_of(header(7, 0, 3, attributes=TRANSACTIONAL_MASK))
    assert state.entries[5].current_txn_first_offset == 7
    state.record(header(10, -1, attributes=TRANSACTIONAL_MASK | CONTROL_MASK), EndTxnMarker(True, 2))
    entry = state.entries[5]
    assert (entry.current_txn_first_offset, entry.coordinator_epoch) == (-1, 2)
    assert check(state, 0, 3, 3) is None


KAFKAS_SNAPSHOT = bytes.fromhex(
    "00012ede9f40000000010000000000000000000000000bb70000000000000bb700000000000001a1e0885cf1"
    "ffffffffffffffffffffffff"
)


def test_a_snapshot_of_apache_kafka_is_read_and_written_alike() -> None:
    state = ProducerState.decode(KAFKAS_SNAPSHOT)
    entry = state.entries[0]
    assert entry.batches == [(2999, 2999, 2999, 0, 1794768395505)]
    assert entry.next_sequence == 3000
    assert state.encode() == KAFKAS_SNAPSHOT
    assert ProducerState().encode() == bytes.fromhex("000148674bc700000000")


@pytest.mark.parametrize("position", range(0, 56, 5))
def test_a_damaged_snapshot_is_refused(position: int) -> None:
    data = bytearray(KAFKAS_SNAPSHOT)
    data[position] ^= 0x40
    with pytest.raises(SnapshotError):
        ProducerState.decode(bytes(data))
    with pytest.raises(SnapshotError):
        ProducerState.decode(KAFKAS_SNAPSHOT[:position])


def test_snapshots_are_files_named_after_their_offset(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("t-0")
    write_snapshot(RealFiles(), str(directory), 3000, state_of(header(2995, 10, 5)))
    names = [path.name for path in directory.iterdir()]
    assert names == ["00000000000000003000.snapshot"]
    assert snapshot_offsets([*names, "x.snapshot", "00000000000000000007.log"]) == [3000]
    loaded = load_snapshot(RealFiles(), str(directory), 3000)
    assert loaded is not None
    assert check(loaded, 0, 10, 14) == (10, 14, 2999, 4, 1000)
    assert load_snapshot(RealFiles(), str(directory), 4) is None
    (directory / names[0]).write_bytes(b"nonsense")
    assert load_snapshot(RealFiles(), str(directory), 3000) is None
