"""The disk of this machine: reserved blocks are seen only in what a file takes up."""

import os
from pathlib import Path

from mainstem.storage.files.real_files import RealFiles
from tests.storage.log_helpers import NOW_MS, append, open_log, read_batches


def _allocated(path: Path) -> int:
    return path.stat().st_blocks * 512


def test_as_much_again_is_reserved_and_the_size_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 5_000_000)
    fd = os.open(path, os.O_RDWR)
    before = _allocated(path)
    assert RealFiles().reserve(fd, 5_000_000) == 10_000_000
    assert path.stat().st_size == 5_000_000
    assert _allocated(path) > before + 4_000_000
    assert RealFiles().reserve(fd, 100 << 20) == (100 << 20) + (16 << 20)
    os.ftruncate(fd, 5_000_000)
    assert _allocated(path) < before + 1_000_000
    os.close(fd)


def test_no_room_is_no_error(tmp_path: Path) -> None:
    read_only = os.open(tmp_path, os.O_RDONLY)
    assert RealFiles().reserve(read_only, 1 << 20) > 1 << 20
    os.close(read_only)


def test_a_growing_segment_reserves_and_a_closed_one_gives_back(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=6_000_000)
    path = tmp_path / "t-0" / f"{0:020d}.log"
    for _ in range(30):
        append(log, value=b"x" * 100_000)
    assert path.stat().st_size == log.segments.active.size < 3_100_000
    assert _allocated(path) > 4_000_000
    log.truncate_to(15, NOW_MS)
    assert _allocated(path) < 1_700_000
    for _ in range(30):
        append(log, value=b"x" * 100_000)
    assert _allocated(path) > path.stat().st_size + 500_000
    log.close()
    assert _allocated(path) < path.stat().st_size + 100_000
    log = open_log(tmp_path, clean=True, segment_bytes=6_000_000)
    while len(log.segments) == 1:
        append(log, value=b"x" * 100_000)
    assert _allocated(path) < path.stat().st_size + 100_000
    assert [header.base_offset for header in read_batches(log)] == list(range(log.log_end_offset))
    log.close()
