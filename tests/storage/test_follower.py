"""Appending as a follower: the leader's batches stay what they are."""

from pathlib import Path

import pytest

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.storage.follower import UnexpectedOffsetError
from mainstem.storage.log import Log
from tests.storage.log_helpers import NOW_MS, append, files, idempotent, open_log, read_batches


def leader_bytes(log: Log) -> bytearray:
    """The whole log, as one fetch would bring it."""
    result = log.read(0, 10**6)
    assert result.records is not None
    return bytearray(result.records.read())


def leader(tmp_path: Path) -> Log:
    log = open_log(tmp_path / "leader")
    for i in range(30):
        append(log, 1 + i % 3, epoch=i // 10, timestamp=NOW_MS + i)
    return log


def test_the_copy_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    source, copy = leader(tmp_path), open_log(tmp_path / "follower")
    data = leader_bytes(source)
    result = copy.append_as_follower(data, NOW_MS)
    assert (result.first_offset, result.last_offset) == (0, source.log_end_offset - 1)
    assert result.max_timestamp == source.segments.active.max_timestamp
    source.close()
    copy.close()
    for suffix in (".log", ".index", ".timeindex", "leader-epoch-checkpoint"):
        assert [path.read_bytes() for path in files(copy, suffix)] == [
            path.read_bytes() for path in files(source, suffix)
        ]


def test_batches_are_spread_over_segments(tmp_path: Path) -> None:
    source, copy = (
        leader(tmp_path),
        open_log(tmp_path / "follower", segment_bytes=500, index_interval_bytes=100),
    )
    copy.append_as_follower(leader_bytes(source), NOW_MS)
    assert len(copy.segments) > 3
    assert all(segment.size <= 500 for segment in copy.segments)
    assert read_batches(copy) == read_batches(source)
    assert copy.leader_epochs.entries == source.leader_epochs.entries == [(0, 0), (1, 19), (2, 39)]


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch(tmp_path: Path) -> None:
    source, copy = leader(tmp_path), open_log(tmp_path / "follower")
    data = leader_bytes(source)
    copy.append_as_follower(data[: len(data) - 10], NOW_MS)
    last = read_batches(source)[-1]
    assert copy.log_end_offset == last.base_offset
    copy.append_as_follower(bytearray(source.read(last.base_offset, 1).records.read()), NOW_MS)  # type: ignore[union-attr]
    assert read_batches(copy) == read_batches(source)
    assert copy.append_as_follower(bytearray(), NOW_MS).last_offset == copy.log_end_offset - 1


def test_what_is_before_a_damaged_batch_is_taken_and_the_damaged_one_refused(tmp_path: Path) -> None:
    source, copy = leader(tmp_path), open_log(tmp_path / "follower")
    data = leader_bytes(source)
    data[-3] ^= 1
    last = read_batches(source)[-1]
    copy.append_as_follower(data, NOW_MS)
    assert copy.log_end_offset == last.base_offset
    with pytest.raises(KafkaError, match="damaged") as refused:
        copy.append_as_follower(data[-last.size :], NOW_MS)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert copy.log_end_offset == last.base_offset


def test_a_batch_of_a_later_epoch_than_the_leaders_is_not_taken(tmp_path: Path) -> None:
    """KAFKA-18723: this leader cannot have written it."""
    source, copy = leader(tmp_path), open_log(tmp_path / "follower")
    copy.append_as_follower(leader_bytes(source), NOW_MS, 1)
    assert copy.log_end_offset == 39, "the batches of epochs 0 and 1"
    following = source.read(39, 1).records
    assert following is not None
    with pytest.raises(KafkaError, match="epoch 2"):
        copy.append_as_follower(bytearray(following.read()), NOW_MS, 1)


def test_offsets_that_do_not_continue_the_log_are_refused(tmp_path: Path) -> None:
    source, copy = leader(tmp_path), open_log(tmp_path / "follower")
    data = leader_bytes(source)
    copy.append_as_follower(data, NOW_MS)
    with pytest.raises(UnexpectedOffsetError, match="expected"):
        copy.append_as_follower(data, NOW_MS)


def test_a_gap_in_the_leaders_log_is_kept(tmp_path: Path) -> None:
    source, copy = leader(tmp_path), open_log(tmp_path / "follower")
    headers = read_batches(source)
    data = leader_bytes(source)
    start = headers[0].size + headers[1].size
    first, third = data[: headers[0].size], data[start : start + headers[2].size]
    copy.append_as_follower(first + third, NOW_MS)
    assert [header.base_offset for header in read_batches(copy)] == [0, headers[2].base_offset]
    result = copy.read(headers[1].base_offset, 1)
    assert result.records is not None


def test_producers_are_followed(tmp_path: Path) -> None:
    source, copy = open_log(tmp_path / "leader"), open_log(tmp_path / "follower")
    for sequence in range(4):
        source.append_as_leader(idempotent(sequence), 0, NOW_MS)
    copy.append_as_follower(leader_bytes(source), NOW_MS)
    assert copy.append_as_leader(idempotent(2), 1, NOW_MS).duplicate
    assert copy.append_as_leader(idempotent(4), 1, NOW_MS).first_offset == 4
