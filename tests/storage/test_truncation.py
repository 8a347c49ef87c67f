"""Cutting a log back: offsets, segments, indexes, epochs and producers all end at the same place."""

from pathlib import Path

import pytest

from mainstem.storage.log import Log
from tests.storage.log_helpers import NOW_MS, append, files, idempotent, open_log, read_batches


def filled(tmp_path: Path) -> Log:
    """A hundred batches of two records over several segments, a new epoch every ten."""
    log = open_log(tmp_path, segment_bytes=1000, index_interval_bytes=100)
    for i in range(100):
        append(log, 2, epoch=i // 10, timestamp=NOW_MS + i)
    return log


@pytest.mark.parametrize("offset", [199, 198, 150, 101, 100, 20, 2, 1, 0])
def test_everything_from_the_offset_on_is_gone(tmp_path: Path, offset: int) -> None:
    log = filled(tmp_path)
    assert log.truncate_to(offset, NOW_MS)
    offset -= offset % 2  # a batch goes as a whole
    assert log.log_end_offset == offset
    kept = read_batches(log)
    assert len(kept) == offset // 2
    assert all(epoch_start < max(offset, 1) for _, epoch_start in log.leader_epochs.entries)
    assert log.size == sum(header.size for header in kept)
    assert append(log, 2, epoch=20) == offset
    assert read_batches(log)[-1].base_offset == offset
    expected = NOW_MS + offset // 2 - 1 + 1 if offset >= 2 else NOW_MS + 1
    assert max(segment.max_timestamp for segment in log.segments) == expected


def test_truncating_to_the_end_or_beyond_does_nothing(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert not log.truncate_to(200, NOW_MS)
    assert not log.truncate_to(500, NOW_MS)
    assert log.log_end_offset == 200
    with pytest.raises(ValueError, match="-1"):
        log.truncate_to(-1, NOW_MS)


@pytest.mark.parametrize("clean", [True, False])
def test_a_truncated_log_opens_again(tmp_path: Path, clean: bool) -> None:
    log = filled(tmp_path)
    log.truncate_to(77, NOW_MS)
    append(log, 3, epoch=30)
    log.close(clean=clean)
    log = open_log(tmp_path, clean=clean, recovery_point=79 if clean else 0)
    assert log.log_end_offset == 79
    assert [header.base_offset for header in read_batches(log)] == [*range(0, 76, 2), 76]
    assert log.leader_epochs.entries[-1] == (30, 76)


def test_emptying_a_log_lets_it_start_anywhere(tmp_path: Path) -> None:
    log = filled(tmp_path)
    for offset in (5000, 10, 0, 0):
        log.truncate_fully_and_start_at(offset, NOW_MS)
        assert (log.log_start_offset, log.log_end_offset, log.size) == (offset, offset, 0)
        assert log.leader_epochs.entries == []
        assert append(log, 2, epoch=40) == offset
        assert len(read_batches(log)) == 1
    log.truncate_fully_and_start_at(300, NOW_MS)
    log.close()
    assert open_log(tmp_path, clean=True, recovery_point=300).log_end_offset == 300


def test_producers_are_as_they_were_at_the_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=700)
    for sequence in range(40):
        log.append_as_leader(idempotent(sequence), 0, NOW_MS)
    log.truncate_to(25, NOW_MS)
    assert log.producers.state.entries[77].next_sequence == 25
    assert log.append_as_leader(idempotent(24), 0, NOW_MS).duplicate
    assert log.append_as_leader(idempotent(25), 0, NOW_MS).first_offset == 25
    assert all(int(path.stem) <= 26 for path in files(log, ".snapshot"))
    log.truncate_fully_and_start_at(26, NOW_MS)
    assert log.producers.state.entries == {}


def test_removed_segments_wait_for_the_deletion_queue(tmp_path: Path) -> None:
    log = filled(tmp_path)
    before = len(log.segments)
    log.truncate_to(0, NOW_MS)
    assert len(files(log, ".log.deleted")) == before - 1
    assert len(log.environment.deletions) == len(files(log, ".deleted"))
    assert log.environment.deletions.take_due(NOW_MS + 59_999, 1) == []
    assert log.environment.deletions.take_due(NOW_MS + 60_000, 1) != []


def test_a_flush_that_began_before_a_truncation_proves_nothing(tmp_path: Path) -> None:
    log = filled(tmp_path)
    work = log.flush_begin()
    log.truncate_to(50, NOW_MS)
    append(log, 20, epoch=50)
    work.run()
    assert log.flush_end(work) == 0
    assert log.flush() == 70
