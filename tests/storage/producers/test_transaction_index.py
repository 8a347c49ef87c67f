"""The files of aborted transactions: their format, what overlaps with a read, cutting, and damage."""

from pathlib import Path

import pytest

from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.producers.transaction_index import (
    AbortedTransaction,
    AbortedTransactions,
    CorruptIndexError,
    index_is_sane,
)

# Version 0, producer id 5, first offset 1, last offset 3, last stable offset 4: Kafka's layout.
KAFKAS_ENTRY = bytes.fromhex("0000 0000000000000005 0000000000000001 0000000000000003 0000000000000004")


def name(base: int) -> str:
    return f"{base:020d}.txnindex"


@pytest.fixture
def aborted(tmp_path: Path) -> AbortedTransactions:
    """Two segments. Producer 2 was open from before 1 began until after it had ended."""
    index = AbortedTransactions(RealFiles(), str(tmp_path))
    index.add(0, AbortedTransaction(1, 10, 20, 5))
    index.add(0, AbortedTransaction(2, 5, 30, 31))
    index.add(100, AbortedTransaction(3, 40, 110, 111))
    index.add(100, AbortedTransaction(1, 112, 120, 121))
    return index


def test_an_entry_is_as_kafka_writes_it(tmp_path: Path) -> None:
    index = AbortedTransactions(RealFiles(), str(tmp_path))
    index.add(0, AbortedTransaction(5, 1, 3, 4))
    assert (tmp_path / name(0)).read_bytes() == KAFKAS_ENTRY


def test_no_file_is_made_before_there_is_something_to_write(tmp_path: Path) -> None:
    index = AbortedTransactions(RealFiles(), str(tmp_path))
    assert not index
    assert index.find(0, 100) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 5, []),
        (0, 6, [(2, 5)]),
        (0, 11, [(1, 10), (2, 5)]),
        (20, 21, [(1, 10), (2, 5)]),
        (21, 31, [(2, 5)]),
        (31, 40, []),
        (31, 41, [(3, 40)]),
        (50, 60, [(3, 40)]),
        (111, 112, []),
        (0, 1000, [(1, 10), (2, 5), (3, 40), (1, 112)]),
        (121, 1000, []),
    ],
)
def test_what_overlaps_is_found_across_segments(
    aborted: AbortedTransactions, start: int, end: int, expected: list[tuple[int, int]]
) -> None:
    assert aborted.find(start, end) == expected


def test_many_entries_are_read_page_by_page(tmp_path: Path) -> None:
    index = AbortedTransactions(RealFiles(), str(tmp_path))
    for number in range(500):
        index.add(0, AbortedTransaction(number, number * 10, number * 10 + 9, number * 10 + 10))
    assert index.find(1234, 3210) == [(number, number * 10) for number in range(123, 321)]
    again = AbortedTransactions(RealFiles(), str(tmp_path), [0])
    assert again.find(4990, 5000) == [(499, 4990)]


def test_cutting_removes_the_markers_behind_the_cut(aborted: AbortedTransactions, tmp_path: Path) -> None:
    aborted.truncate(120)
    assert aborted.find(0, 1000) == [(1, 10), (2, 5), (3, 40)]
    aborted.truncate(110)
    assert not (tmp_path / name(100)).exists(), "an index without entries is no file"
    assert aborted.find(0, 1000) == [(1, 10), (2, 5)]
    aborted.truncate(30)
    assert aborted.find(0, 1000) == [(1, 10)]
    aborted.add(0, AbortedTransaction(7, 21, 25, 26))
    assert AbortedTransactions(RealFiles(), str(tmp_path), [0]).find(0, 1000) == [(1, 10), (7, 21)]


def test_a_segment_that_is_gone_takes_its_entries_with_it(aborted: AbortedTransactions) -> None:
    aborted.forget(0)
    aborted.forget(50)
    assert aborted.find(0, 1000) == [(3, 40), (1, 112)]


def test_what_was_written_is_named_for_the_next_fsync_once(
    aborted: AbortedTransactions, tmp_path: Path
) -> None:
    assert aborted.take_unsynced() == [str(tmp_path), str(tmp_path / name(0)), str(tmp_path / name(100))]
    assert aborted.take_unsynced() == []
    aborted.add(100, AbortedTransaction(1, 122, 130, 131))
    assert aborted.take_unsynced() == [str(tmp_path / name(100))]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: b"\0\1" + data[2:],
        lambda data: data[:-34] + b"\0" * 34,
        lambda data: data[:10] + b"\x7f" + data[11:],
    ],
    ids=["cut in an entry", "a later version", "zeros at the end", "begins after it ends"],
)
def test_a_damaged_file_is_noticed(aborted: AbortedTransactions, tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / name(100)
    path.write_bytes(damage(path.read_bytes()))
    assert index_is_sane(RealFiles(), str(tmp_path), 0)
    assert not index_is_sane(RealFiles(), str(tmp_path), 100)
    assert index_is_sane(RealFiles(), str(tmp_path), 200), "a segment needs no index"
    with pytest.raises(CorruptIndexError) as damaged:
        AbortedTransactions(RealFiles(), str(tmp_path), [0, 100]).find(0, 1000)
    assert damaged.value.base_offset == 100
