"""Leader epochs: where each began, what Kafka answers about their ends, and their file."""

from pathlib import Path

import pytest

from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.leader_epoch_cache import LeaderEpochCache


def cache_of(directory: Path, *entries: tuple[int, int]) -> LeaderEpochCache:
    cache = LeaderEpochCache(RealFiles(), directory)
    for epoch, offset in entries:
        cache.assign(epoch, offset)
    return cache


def test_the_file_is_kafkas_and_is_read_back(tmp_path: Path) -> None:
    cache = cache_of(tmp_path, (0, 0))
    cache.write()
    cache.assign(3, 17)
    cache.write()
    cache.sync()
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n3 17\n"
    assert LeaderEpochCache(RealFiles(), tmp_path).entries == [(0, 0), (3, 17)]


def test_nothing_is_written_while_nothing_changes(tmp_path: Path) -> None:
    cache = cache_of(tmp_path)
    cache.write()
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_counts_as_empty(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n5\n0 0\n")
    assert LeaderEpochCache(RealFiles(), tmp_path).entries == []
    assert "ignoring the leader epochs" in caplog.text


@pytest.mark.parametrize(
    ("epoch", "offset", "expected"),
    [
        (5, 30, [(1, 0), (2, 10), (4, 20), (5, 30)]),
        (4, 25, [(1, 0), (2, 10), (4, 20)]),
        (4, 15, [(1, 0), (2, 10), (4, 15)]),
        (5, 20, [(1, 0), (2, 10), (5, 20)]),
        (3, 25, [(1, 0), (2, 10), (3, 25)]),
        (9, 0, [(9, 0)]),
    ],
)
def test_a_new_entry_removes_what_contradicts_it(
    tmp_path: Path, epoch: int, offset: int, expected: list[tuple[int, int]]
) -> None:
    cache = cache_of(tmp_path, (1, 0), (2, 10), (4, 20))
    cache.assign(epoch, offset)
    assert cache.entries == expected


@pytest.mark.parametrize(
    ("asked", "answer"),
    [(-1, (-1, -1)), (0, (0, 0)), (1, (1, 10)), (2, (2, 20)), (3, (2, 20)), (4, (4, 99)), (5, (-1, -1))],
)
def test_the_end_of_an_epoch_is_answered_as_kafka_does(
    tmp_path: Path, asked: int, answer: tuple[int, int]
) -> None:
    assert cache_of(tmp_path, (1, 0), (2, 10), (4, 20)).end_offset_for(asked, 99) == answer


def test_without_epochs_every_answer_is_undefined(tmp_path: Path) -> None:
    cache = cache_of(tmp_path)
    assert cache.end_offset_for(0, 10) == (-1, -1)
    assert cache.latest_epoch == -1
    assert cache.epoch_for_offset(5) == -1


@pytest.mark.parametrize(("offset", "epoch"), [(0, -1), (4, -1), (5, 1), (9, 1), (10, 2), (100, 2)])
def test_the_epoch_of_an_offset(tmp_path: Path, offset: int, epoch: int) -> None:
    assert cache_of(tmp_path, (1, 5), (2, 10)).epoch_for_offset(offset) == epoch


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (0, [(1, 0), (2, 10), (4, 20)]),
        (5, [(1, 5), (2, 10), (4, 20)]),
        (10, [(2, 10), (4, 20)]),
        (15, [(2, 15), (4, 20)]),
        (50, [(4, 50)]),
    ],
)
def test_truncation_from_the_start_keeps_the_epoch_of_the_new_start(
    tmp_path: Path, start: int, expected: list[tuple[int, int]]
) -> None:
    cache = cache_of(tmp_path, (1, 0), (2, 10), (4, 20))
    cache.truncate_from_start(start)
    assert cache.entries == expected


def test_truncation_from_the_end_forgets_epochs_that_began_there(tmp_path: Path) -> None:
    cache = cache_of(tmp_path, (1, 0), (2, 10), (4, 20))
    cache.truncate_from_end(11)
    assert cache.entries == [(1, 0), (2, 10)]
    cache.truncate_from_end(10)
    assert cache.entries == [(1, 0)]
    cache.clear()
    assert cache.entries == []


def test_impossible_entries_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot start"):
        cache_of(tmp_path, (-1, 0))
