"""Which names a piece of work gives to files, and takes from them, in which order, and where it waits until
they are on disk; to find out what a crash or a loss of power leaves behind at any point of it.

A crash leaves everything up to some operation. A loss of power may in addition undo any of the operations
since the folder was last synced: that is what POSIX says, whatever a file system promises.
"""

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

# ("rename", from, to), ("write", name, content), ("unlink", name), ("sync",)
Operation = tuple[str, ...]


class SimulatedCrash(BaseException):
    """The process ends here."""


class RenameRecorder:
    """Notes every change of names, and can end the work before one of them."""

    def __init__(self, crash_at: int | None = None) -> None:
        self.operations: list[Operation] = []
        self._crash_at = crash_at

    def _note(self, *operation: str) -> None:
        if len(self.operations) == self._crash_at:
            raise SimulatedCrash
        self.operations.append(operation)

    @contextmanager
    def recording(self) -> Iterator["RenameRecorder"]:
        with pytest.MonkeyPatch.context() as patch:
            rename, replace, unlink, fsync = os.rename, os.replace, os.unlink, os.fsync

            def moving(real: Callable[[str, str], None]) -> Callable[[str, str], None]:
                def move(source: str, target: str) -> None:
                    if str(source).endswith(".tmp"):
                        self._note("write", Path(target).name, Path(source).read_text())
                    else:
                        self._note("rename", Path(source).name, Path(target).name)
                    real(source, target)

                return move

            def remove(path: str) -> None:
                if os.path.exists(path):
                    self._note("unlink", Path(path).name)
                unlink(path)

            def sync(fd: int) -> None:
                if os.path.isdir(f"/proc/self/fd/{fd}"):
                    self._note("sync")
                fsync(fd)

            patch.setattr(os, "rename", moving(rename))
            patch.setattr(os, "replace", moving(replace))
            patch.setattr(os, "unlink", remove)
            patch.setattr(os, "fsync", sync)
            yield self


def apply(operations: list[Operation], folder: Path) -> None:
    """Do these operations in a folder; what is not there cannot be renamed."""
    for operation in operations:
        match operation:
            case ("rename", source, target):
                if (folder / source).exists():
                    (folder / source).rename(folder / target)
            case ("write", name, content):
                (folder / name).write_text(content)
            case ("unlink", name):
                (folder / name).unlink(missing_ok=True)


def after_crash(operations: list[Operation]) -> Iterator[list[Operation]]:
    """All that a crash can leave of them."""
    for count in range(len(operations) + 1):
        yield operations[:count]


def after_power_loss(operations: list[Operation], random: Random, samples: int) -> Iterator[list[Operation]]:
    """What a loss of power can leave of them, each single operation missing once and samples of the rest."""
    for count in range(len(operations) + 1):
        syncs = [number for number in range(count) if operations[number] == ("sync",)]
        durable = syncs[-1] + 1 if syncs else 0
        loose = list(range(durable, count))
        lost_ones: list[tuple[int, ...]] = [(number,) for number in loose]
        for _ in range(samples):
            lost_ones.append(tuple(number for number in loose if random.random() < 0.5))
        for lost in set(lost_ones):
            yield [operations[number] for number in range(count) if number not in lost]


def copies(source: Path, parent: Path) -> Iterator[Path]:
    """As many copies of a folder as anybody wants."""
    for number in itertools.count():
        target = parent / str(number) / source.name
        shutil.copytree(source, target)
        yield target
