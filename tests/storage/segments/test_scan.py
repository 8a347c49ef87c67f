"""Walking batches by their headers: across chunk borders, to a target, and to the last boundary."""

import os
from pathlib import Path

import pytest

from mainstem.storage.files.file_range import FileHandle
from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.segments.scan import (
    CorruptSegmentError,
    base_offset_at,
    find_offset,
    iter_batch_headers,
    last_boundary,
)
from tests.storage.log_helpers import batch

# Small, larger than a chunk, and so that headers lie across the borders of chunks.
SIZES = [10, 100, 9000, 10, 3, 8000, 20_000, 70_000, 1, 1, 1] + [77] * 300


@pytest.fixture
def segment(tmp_path: Path) -> tuple[FileHandle, list[int]]:
    """An open file of batches of two records, and their positions with the end of the file."""
    positions = [0]
    data = bytearray()
    for number, size in enumerate(SIZES):
        data += batch(2, value=bytes(size), base_offset=number * 2, leader_epoch=0)
        positions.append(len(data))
    path = tmp_path / "0.log"
    path.write_bytes(data)
    return FileHandle(RealFiles(), os.open(path, os.O_RDWR)), positions


def test_every_batch_is_found_once(segment: tuple[FileHandle, list[int]]) -> None:
    file, positions = segment
    found = list(iter_batch_headers(file, 0, positions[-1]))
    assert [position for position, _ in found] == positions[:-1]
    assert [header.base_offset for _, header in found] == [2 * i for i in range(len(SIZES))]


def test_the_batch_of_an_offset_is_found_from_any_boundary_before_it(
    segment: tuple[FileHandle, list[int]],
) -> None:
    file, positions = segment
    for number in range(0, len(SIZES), 7):
        for start in (0, number // 2, number):
            found = find_offset(file, positions[start], positions[-1], number * 2 + 1)
            assert found == (positions[number], positions[number + 1] - positions[number], number * 2 + 1)
    assert find_offset(file, 0, positions[-1], 10**6) is None


def test_the_last_boundary_is_the_one_before_the_limit(segment: tuple[FileHandle, list[int]]) -> None:
    file, positions = segment
    for number in range(1, len(SIZES), 5):
        for limit in (positions[number], positions[number] + 1, positions[number + 1] - 1):
            assert last_boundary(file, 0, limit) == (positions[number], number * 2)
    assert last_boundary(file, 0, positions[-1] + 5) == (positions[-1], 2 * len(SIZES))
    assert last_boundary(file, 0, 5) == (0, 0)


def test_a_header_that_cannot_be_right_ends_the_walk(segment: tuple[FileHandle, list[int]]) -> None:
    file, positions = segment
    os.pwrite(file.fd, bytes(4), positions[5] + 8)
    for walk in (
        lambda: list(iter_batch_headers(file, 0, positions[-1])),
        lambda: find_offset(file, 0, positions[-1], 50),
        lambda: last_boundary(file, 0, positions[8]),
    ):
        with pytest.raises(CorruptSegmentError, match="impossible length 0") as found:
            walk()
        assert found.value.position == positions[5]


def test_a_place_that_is_no_boundary_is_told_apart(segment: tuple[FileHandle, list[int]]) -> None:
    file, positions = segment
    end = positions[-1]
    assert base_offset_at(file, positions[3], end, 0, 7) == 6
    assert base_offset_at(file, positions[3], end, 0, 6) is None
    assert base_offset_at(file, positions[3] + 1, end, 0, 10**6) is None
    assert base_offset_at(file, end, end, 0, 10**6) is None
    assert base_offset_at(file, -5, end, 0, 10**6) is None
