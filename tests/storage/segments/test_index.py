"""A sparse index: entries in a file and in memory behave as one sorted run."""

import os
import random
from pathlib import Path

import pytest

from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.segments.index import OFFSET_ENTRY, TIME_ENTRY, SparseIndex


def index_with(path: Path, entries: list[tuple[int, int]], written: int) -> SparseIndex:
    """An index of which the first `written` entries are in the file."""
    index = SparseIndex(RealFiles(), str(path), OFFSET_ENTRY)
    for number, (first, second) in enumerate(entries):
        if number == written:
            index.write()
        index.append(first, second)
    return index


@pytest.mark.parametrize("written", [0, 1, 700, 1999])
def test_floor_finds_the_last_entry_not_above(tmp_path: Path, written: int) -> None:
    entries = [(i * 3, i * 100) for i in range(2000)]
    index = index_with(tmp_path / "0.index", entries, written)
    assert index.count == 2000
    chance = random.Random(1)
    for _ in range(200):
        value = chance.randrange(-2, 6100)
        expected = max((entry for entry in entries if entry[0] <= value), default=None)
        assert index.floor(value) == expected
        position = chance.randrange(0, 210_000)
        assert index.floor(position, 1) == max(entry for entry in entries if entry[1] <= position)


def test_an_empty_index_finds_nothing(tmp_path: Path) -> None:
    index = SparseIndex(RealFiles(), str(tmp_path / "none.index"), OFFSET_ENTRY)
    assert index.floor(10) is None
    assert index.last() is None
    assert index.count == 0


def test_entries_are_written_big_endian_and_in_bulk(tmp_path: Path) -> None:
    path = tmp_path / "0.timeindex"
    index = SparseIndex(RealFiles(), str(path), TIME_ENTRY)
    index.append(5, 1)
    assert not path.exists()
    index.write()
    assert path.read_bytes() == bytes.fromhex("0000000000000005 00000001")
    for i in range(1000):
        index.append(6 + i, 2 + i)
    assert path.stat().st_size > 8000
    assert index.count == 1001
    assert index.last() == (1005, 1001)


@pytest.mark.parametrize("keep", [0, 3, 10, 15, 20])
def test_truncation_keeps_the_first_entries(tmp_path: Path, keep: int) -> None:
    entries = [(i, i) for i in range(20)]
    index = index_with(tmp_path / "0.index", entries, 10)
    index.truncate(keep)
    assert index.count == keep
    assert [index.entry(i) for i in range(keep)] == entries[:keep]
    index.append(keep, keep)
    index.write()
    assert os.path.getsize(tmp_path / "0.index") == (keep + 1) * 8


def test_replacing_writes_only_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "0.index"
    path.write_bytes(OFFSET_ENTRY.pack(1, 2) * 5)
    before = path.stat().st_mtime_ns
    same = SparseIndex(RealFiles(), str(path), OFFSET_ENTRY)
    same.replace(bytearray(OFFSET_ENTRY.pack(1, 2) * 5))
    assert path.stat().st_mtime_ns == before
    assert same.count == 5
    same.replace(bytearray(OFFSET_ENTRY.pack(3, 4)))
    assert path.read_bytes() == OFFSET_ENTRY.pack(3, 4)
