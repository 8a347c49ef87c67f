"""Which names a piece of work gives to files, and takes from them, in which order, and where it waits until
they are on disk; to find out what a crash or a loss of power leaves behind at any point of it.

A crash leaves everything up to some operation. A loss of power may in addition undo any of the operations
since the folder was last synced: that is what POSIX says, whatever a file system promises.
"""

import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

from mainstem.storage.files.files import AnyPath
from tests.support.failing_files import FailingFiles

# ("rename", from, to), ("write", name, content), ("unlink", name), ("sync",)
Operation = tuple[str, ...]


class SimulatedCrash(BaseException):
    """The process ends here."""


class RenameRecorder(FailingFiles):
    """A disk that notes every change of names, and can end the work before one of them."""

    def __init__(self, crash_at: int | None = None) -> None:
        super().__init__(rename=self._move, replace=self._move, unlink=self._remove, fsync=self._sync)
        self.operations: list[Operation] = []
        self._crash_at = crash_at

    def _note(self, *operation: str) -> None:
        if len(self.operations) == self._crash_at:
            raise SimulatedCrash
        self.operations.append(operation)

    def _move(self, source: AnyPath, target: AnyPath) -> None:
        if str(source).endswith(".tmp"):
            self._note("write", Path(target).name, Path(source).read_bytes().decode("latin-1"))
        else:
            self._note("rename", Path(source).name, Path(target).name)
        os.replace(source, target)

    def _remove(self, path: AnyPath) -> None:
        if os.path.exists(path):
            self._note("unlink", Path(path).name)
        os.unlink(path)

    def _sync(self, fd: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            self._note("sync")
        os.fsync(fd)


def apply(operations: list[Operation], folder: Path) -> None:
    """Do these operations in a folder; what is not there cannot be renamed."""
    for operation in operations:
        match operation:
            case ("rename", source, target):
                if (folder / source).exists():
                    (folder / source).rename(folder / target)
            case ("write", name, content):
                (folder / name).write_bytes(content.encode("latin-1"))
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
