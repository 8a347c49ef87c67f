"""Open files: closed by themselves, bounded in number, alive while somebody sends from them."""

import os
from pathlib import Path

import pytest

from mainstem.storage.files.file_range import FileHandle, FileRange, HandleCache
from mainstem.storage.files.real_files import RealFiles


class Owner:
    def __init__(self, path: Path) -> None:
        path.write_bytes(b"0123456789")
        self.path = str(path)
        self.handle: FileHandle | None = None


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_the_cache_keeps_at_most_its_limit_open(tmp_path: Path) -> None:
    cache = HandleCache(RealFiles(), 3)
    owners = [Owner(tmp_path / str(i)) for i in range(10)]
    for owner in owners:
        cache.open(owner, owner.path)
        assert sum(other.handle is not None for other in owners) <= 3
    assert len(cache) == 3


def test_a_file_in_use_gets_a_second_chance(tmp_path: Path) -> None:
    cache = HandleCache(RealFiles(), 3)
    busy, *others = [Owner(tmp_path / str(i)) for i in range(8)]
    cache.open(busy, busy.path)
    for owner in others:
        cache.open(owner, owner.path).used = False
        assert busy.handle is not None
        busy.handle.used = True


def test_a_range_outlives_its_owner_and_its_file(tmp_path: Path) -> None:
    cache = HandleCache(RealFiles(), 1)
    owner = Owner(tmp_path / "a")
    piece = FileRange(cache.open(owner, owner.path), 2, 5)
    fd = piece.fileno()
    cache.forget(owner)
    os.unlink(owner.path)
    assert piece.read() == b"23456"
    piece.advance(3)
    assert (piece.position, piece.length, piece.read()) == (5, 2, b"56")
    del piece
    assert not is_open(fd)


def test_opening_twice_gives_the_same_handle(tmp_path: Path) -> None:
    cache = HandleCache(RealFiles(), 2)
    owner = Owner(tmp_path / "a")
    assert cache.open(owner, owner.path) is cache.open(owner, owner.path)
    with pytest.raises(ValueError, match="one file"):
        HandleCache(RealFiles(), 0)
