"""Damage to files, as a crash or a bad disk does it, at places that a seed decides."""

import os
from pathlib import Path
from random import Random


def flip_bit(path: Path, random: Random, start: int = 0) -> int:
    """Turn one bit round, at or after `start`; returns the position of its byte."""
    size = path.stat().st_size
    position = random.randrange(start, size)
    with path.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ (1 << random.randrange(8))]))
    return position


def cut(path: Path, random: Random, start: int = 0) -> int:
    """Cut the file somewhere at or after `start`; returns its new size."""
    position = random.randrange(start, path.stat().st_size)
    os.truncate(path, position)
    return position


def add_garbage(path: Path, random: Random, start: int = 0) -> int:
    """Put bytes behind the end that mean nothing; returns where they begin."""
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(random.randbytes(random.randint(1, 500)))
    return size


def add_zeros(path: Path, random: Random, start: int = 0) -> int:
    """Put zeros behind the end, as a file system does that had grown a file and not yet written it."""
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(bytes(random.randint(1, 5000)))
    return size


def zero_the_end(path: Path, random: Random, start: int = 0) -> int:
    """Overwrite the end of the file with zeros from somewhere at or after `start`; returns from where."""
    size = path.stat().st_size
    position = random.randrange(start, size)
    with path.open("r+b") as file:
        file.seek(position)
        file.write(bytes(size - position))
    return position


def fill_with_garbage(path: Path, random: Random) -> None:
    """Other bytes than before, of any values."""
    path.write_bytes(random.randbytes(random.randint(1, 300)))


def empty(path: Path, random: Random) -> None:
    os.truncate(path, 0)


def remove(path: Path, random: Random) -> None:
    path.unlink()
