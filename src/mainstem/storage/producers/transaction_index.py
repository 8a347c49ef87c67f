"""Which transactions of a log were aborted: one small file beside each segment that holds an abort marker.

A reader of committed records gets the ones that overlap with what it reads and leaves their records out. In
contrast to the other indexes, what it says is part of every answer, so an entry is in its file before the
marker is in the log. The files are in Kafka's format, and can be made again from the log.
"""

import errno
import os
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mainstem.storage.files.checkpoints import write_file
from mainstem.storage.files.deletion import remove_if_there
from mainstem.storage.files.files import Files

TXN_INDEX_SUFFIX = ".txnindex"
ENTRY = struct.Struct(">hqqqq")  # version, producer id, first offset, last offset, last stable offset
_VERSION = 0
_LAST_OFFSET = struct.Struct(">q")
_LAST_OFFSET_POSITION = 18
_PAGE_BYTES = 64 * ENTRY.size


class AbortedTransaction(NamedTuple):
    """`last_offset` is the marker's; `last_stable_offset` is what it was when the marker came."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class CorruptIndexError(Exception):
    """The index of the segment with this base offset cannot be believed."""

    def __init__(self, base_offset: int, reason: str) -> None:
        super().__init__(f"the transaction index of segment {base_offset} is damaged: {reason}")
        self.base_offset = base_offset


class TransactionIndex:
    """The aborted transactions whose markers are in one segment, in the order of the markers."""

    __slots__ = ("_count", "_files", "base_offset", "is_damaged", "last_offset", "path")

    def __init__(self, files: Files, directory: str, base_offset: int) -> None:
        self._files = files
        self.path = index_path(directory, base_offset)
        self.base_offset = base_offset
        self.is_damaged = False
        self._count = -1
        self.last_offset = -1

    def load(self) -> int:
        """The number of entries. The first time, the file is looked at."""
        if self.is_damaged:
            raise CorruptIndexError(self.base_offset, "it has to be made again")
        if self._count >= 0:
            return self._count
        fd = self._open(os.O_RDONLY)
        try:
            size = self._files.fstat(fd).st_size
            self.last_offset = self._check_ends(fd, size)
        finally:
            self._files.close(fd)
        self._count = size // ENTRY.size
        return self._count

    def _open(self, flags: int) -> int:
        try:
            return self._files.open(self.path, flags | os.O_CLOEXEC)
        except FileNotFoundError:
            raise CorruptIndexError(self.base_offset, "it is gone") from None

    def _check_ends(self, fd: int, size: int) -> int:
        """Look at the first and the last entry; returns the last offset."""
        if size % ENTRY.size:
            raise CorruptIndexError(self.base_offset, f"{size} bytes are not a whole number of entries")
        if size == 0:
            return -1
        first, last = next(self._read(fd, 0)), next(self._read(fd, size // ENTRY.size - 1))
        if not self.base_offset <= first.last_offset <= last.last_offset:
            raise CorruptIndexError(self.base_offset, "its offsets do not belong here")
        return last.last_offset

    def _read(self, fd: int, number: int) -> Iterator[AbortedTransaction]:
        """The entries from this one on."""
        while data := self._files.pread(fd, _PAGE_BYTES, number * ENTRY.size):
            if len(data) % ENTRY.size:
                raise CorruptIndexError(self.base_offset, "an entry is cut off")
            for version, producer_id, first_offset, last_offset, stable in ENTRY.iter_unpack(data):
                if version != _VERSION or not 0 <= first_offset < last_offset:
                    raise CorruptIndexError(
                        self.base_offset, f"an entry has version {version}, {first_offset} to {last_offset}"
                    )
                yield AbortedTransaction(producer_id, first_offset, last_offset, stable)
            number += len(data) // ENTRY.size

    def entries(self) -> Iterator[AbortedTransaction]:
        """All of them; FileNotFoundError when there is no file."""
        fd = self._files.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield from self._read(fd, 0)
        finally:
            self._files.close(fd)

    def _number_of(self, fd: int, count: int, offset: int) -> int:
        """Of the first entry whose marker is at `offset` or later."""

        def last_offset(number: int) -> int:
            data = self._files.pread(fd, _LAST_OFFSET.size, number * ENTRY.size + _LAST_OFFSET_POSITION)
            if len(data) != _LAST_OFFSET.size:
                raise CorruptIndexError(self.base_offset, "it is shorter than it was")
            return int(_LAST_OFFSET.unpack(data)[0])

        return bisect_left(range(count), offset, key=last_offset)

    def add(self, entry: AbortedTransaction) -> None:
        """Add an entry behind the others, whole or not at all. The file is made if it is not there."""
        count = max(self._count, 0)
        if entry.last_offset == self.last_offset:
            return  # the index was just made again from a log that has the marker already
        assert entry.last_offset > self.last_offset, f"{entry} does not follow {self.last_offset}"
        fd = self._files.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            written = self._files.pwrite(fd, ENTRY.pack(_VERSION, *entry), count * ENTRY.size)
            if written != ENTRY.size:
                self._files.ftruncate(fd, count * ENTRY.size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            self._files.close(fd)
        self._count, self.last_offset = count + 1, entry.last_offset

    def overlapping(self, start: int, end: int, found: list[tuple[int, int]]) -> bool:
        """Add (producer id, first offset) of those that overlap with the offsets from `start` to before
        `end`; True when a later marker cannot be of such a transaction.
        """
        count = self.load()
        if self.last_offset < start:
            return False
        fd = self._open(os.O_RDONLY)
        try:
            for entry in self._read(fd, self._number_of(fd, count, start)):
                if entry.first_offset < end:
                    found.append((entry.producer_id, entry.first_offset))
                if entry.last_stable_offset >= end:
                    return True  # whatever was open then, and whatever came later, begins behind `end`
        finally:
            self._files.close(fd)
        return False

    def truncate(self, offset: int) -> int:
        """Remove the entries whose marker is at `offset` or later; returns how many are left."""
        count = self.load()
        if self.last_offset < offset:
            return count
        fd = self._open(os.O_RDWR)
        try:
            count = self._number_of(fd, count, offset)
            self._files.ftruncate(fd, count * ENTRY.size)
            self.last_offset = next(self._read(fd, count - 1)).last_offset if count else -1
        finally:
            self._files.close(fd)
        self._count = count
        return count


class AbortedTransactions:
    """The transaction indexes of all segments of a log that have one."""

    __slots__ = ("_bases", "_directory", "_files", "_indexes", "_unsynced")

    def __init__(
        self, files: Files, directory: str, bases: Iterable[int] = (), *, synced: bool = True
    ) -> None:
        self._files = files
        self._directory = directory
        self._bases = sorted(bases)
        self._indexes = [TransactionIndex(self._files, directory, base) for base in self._bases]
        # What the next flush must also make durable: files that were written, or the folder for a new one.
        self._unsynced = set() if synced else {directory, *(index.path for index in self._indexes)}

    def __bool__(self) -> bool:
        return bool(self._indexes)

    @property
    def bases(self) -> list[int]:
        """The base offsets of the segments that have an index."""
        return list(self._bases)

    def add(self, base_offset: int, entry: AbortedTransaction) -> None:
        """Write down that a transaction was aborted; the marker is in the last segment, which begins here."""
        if self._bases and self._bases[-1] == base_offset:
            index = self._indexes[-1]
            index.load()
        else:
            index = TransactionIndex(self._files, self._directory, base_offset)
            self._unsynced.add(self._directory)
            self._bases.append(base_offset)
            self._indexes.append(index)
        try:
            index.add(entry)
        except OSError:
            self._forget_if_empty(index)
            raise
        self._unsynced.add(index.path)

    def find(self, start: int, end: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions that overlap with these offsets, in the
        order of their markers.
        """
        found: list[tuple[int, int]] = []
        for index in self._indexes[max(0, bisect_right(self._bases, start) - 1) :]:
            if index.overlapping(start, end, found):
                break
        return found

    def truncate(self, offset: int) -> None:
        """Forget the markers from `offset` on. Those of segments that are gone are forgotten already."""
        if self._indexes:
            index = self._indexes[-1]
            index.truncate(offset)
            self._forget_if_empty(index)

    def forget(self, base_offset: int) -> None:
        """The segment was taken out of the log, and its files have other names."""
        at = bisect_left(self._bases, base_offset)
        if at < len(self._bases) and self._bases[at] == base_offset:
            del self._bases[at], self._indexes[at]

    def get(self, base_offset: int) -> TransactionIndex | None:
        """The index of a segment, if it has one."""
        at = bisect_left(self._bases, base_offset)
        return self._indexes[at] if at < len(self._bases) and self._bases[at] == base_offset else None

    def mark_damaged(self, base_offset: int) -> None:
        """The index of a segment must not grow until it is made again."""
        index = self.get(base_offset)
        assert index is not None
        index.is_damaged = True

    def replace(self, base_offset: int, entries: list[AbortedTransaction]) -> None:
        """Have these entries for a segment, found in the log, instead of those in the file."""
        write_entries(self._files, index_path(self._directory, base_offset), entries)
        self.forget(base_offset)
        if entries:
            self.renew(base_offset)

    def adopt(self, base_offset: int, path: str) -> None:
        """The same with a file that `write_entries` wrote elsewhere; there is none without entries."""
        has_entries = self._files.exists(path)
        if has_entries:
            self._files.replace(path, index_path(self._directory, base_offset))
        else:
            remove_if_there(self._files, index_path(self._directory, base_offset))
        self.forget(base_offset)
        if has_entries:
            self.renew(base_offset)

    def renew(self, base_offset: int) -> None:
        """A segment whose index was forgotten has a new one, in its place."""
        at = bisect_left(self._bases, base_offset)
        index = TransactionIndex(self._files, self._directory, base_offset)
        self._bases.insert(at, base_offset)
        self._indexes.insert(at, index)
        self._unsynced |= {index.path, self._directory}

    def moved_to(self, directory: str) -> None:
        """The partition's folder has a new name."""
        self._directory = directory
        self._indexes = [TransactionIndex(self._files, directory, base) for base in self._bases]
        self._unsynced.clear()

    def take_unsynced(self) -> list[str]:
        """The paths to sync before what was added is safe from a power failure."""
        paths = sorted(self._unsynced)
        self._unsynced.clear()
        return paths

    def _forget_if_empty(self, index: TransactionIndex) -> None:
        if index.last_offset < 0:
            self.forget(index.base_offset)
            remove_if_there(self._files, index.path)


def index_path(directory: str, base_offset: int) -> str:
    return f"{directory}/{base_offset:020d}{TXN_INDEX_SUFFIX}"


def write_entries(files: Files, path: str, entries: list[AbortedTransaction]) -> None:
    """Make the index of a segment anew; without entries there is no file."""
    if not entries:
        remove_if_there(files, path)
        return
    write_file(files, path, b"".join(ENTRY.pack(_VERSION, *entry) for entry in entries))


def read_entries(files: Files, directory: str, base_offset: int) -> list[AbortedTransaction]:
    """All entries of a segment's index; none when there is no file."""
    try:
        return list(TransactionIndex(files, directory, base_offset).entries())
    except FileNotFoundError:
        return []


def index_is_sane(files: Files, directory: str, base_offset: int) -> bool:
    """Whether a segment's index, if it has one, looks as it should at both ends."""
    try:
        TransactionIndex(files, directory, base_offset).load()
    except CorruptIndexError:
        return not files.exists(index_path(directory, base_offset))
    return True
