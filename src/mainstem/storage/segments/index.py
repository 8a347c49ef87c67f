"""A segment's sparse indexes: offset to position, and timestamp to offset, in Kafka's file formats.

An index is a sorted run of fixed-size entries. Most of it lies in its file, which is opened only for a
look-up or a write; the newest entries are kept here and written in bulk. It must never be needed for
correctness: everything in it can be made again from the log.
"""

import os
import struct
from bisect import bisect_right

from mainstem.storage.errors import is_passing
from mainstem.storage.files.checkpoints import read_file, write_file
from mainstem.storage.files.files import Files

OFFSET_ENTRY = struct.Struct(">ii")  # relative offset, position
TIME_ENTRY = struct.Struct(">qi")  # timestamp, relative offset
_TAIL_BYTES_MAX = 8192
_PAGE_ENTRIES = 256


class SparseIndex:
    """Entries on disk followed by entries in memory."""

    __slots__ = ("_disk_bytes", "_entry", "_files", "_recent", "_tail", "path")

    def __init__(self, files: Files, path: str, entry: struct.Struct, disk_bytes: int = -1) -> None:
        self._files = files
        self.path = path
        self._entry = entry
        self._disk_bytes = disk_bytes
        self._tail = bytearray()
        self._recent = b""  # the run of entries of the file that was looked at last: readers go forward

    # ---- size

    def disk_bytes(self) -> int:
        """Bytes in the file; 0 if there is none. Asked of the file system once."""
        if self._disk_bytes < 0:
            try:
                self._disk_bytes = self._files.stat(self.path).st_size
            except FileNotFoundError:
                self._disk_bytes = 0
        return self._disk_bytes

    @property
    def count(self) -> int:
        return (self.disk_bytes() + len(self._tail)) // self._entry.size

    # ---- writing

    def append(self, first: int, second: int) -> None:
        """Add an entry behind all others. A full disk is no error here: the entry waits in memory."""
        self._tail += self._entry.pack(first, second)
        if len(self._tail) >= _TAIL_BYTES_MAX:
            try:
                self.write()
            except OSError as error:
                if not is_passing(error):
                    raise

    def write(self) -> None:
        """Bring the entries in memory into the file, which is made if it is not there."""
        position = self.disk_bytes()
        files = self._files
        fd = files.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if self._tail:
                written = files.pwrite(fd, self._tail, position)
                # An entry cut in two is worse than one that waits.
                whole = written - written % self._entry.size
                if whole != written:
                    files.ftruncate(fd, position + whole)
                self._disk_bytes = position + whole
                del self._tail[:whole]
        finally:
            files.close(fd)

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries."""
        size = count * self._entry.size
        if size >= self.disk_bytes():
            del self._tail[size - self._disk_bytes :]
            return
        self._tail.clear()
        self._recent = b""
        fd = self._files.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            self._files.ftruncate(fd, size)
        finally:
            self._files.close(fd)
        self._disk_bytes = size

    def replace(self, entries: bytearray) -> None:
        """Have these entries instead of those that are there."""
        self._recent = b""
        if self._holds(entries):
            return
        write_file(self._files, self.path, b"")
        self._disk_bytes = 0
        self._tail = entries
        self.write()

    def _holds(self, entries: bytearray) -> bool:
        """Whether the file has exactly this content; to write less after a crash of a node with many logs."""
        try:
            if read_file(self._files, self.path) != entries:
                return False
        except FileNotFoundError:
            return False
        self._disk_bytes = len(entries)
        self._tail.clear()
        return True

    # ---- reading

    def entry(self, number: int) -> tuple[int, int]:
        """The entry with this number, counted from 0."""
        position = number * self._entry.size
        on_disk = self.disk_bytes()
        if position >= on_disk:
            return self._entry.unpack_from(self._tail, position - on_disk)
        fd = self._files.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = self._files.pread(fd, self._entry.size, position)
        finally:
            self._files.close(fd)
        return self._entry.unpack(data)

    def last(self) -> tuple[int, int] | None:
        count = self.count
        return self.entry(count - 1) if count else None

    def floor(self, value: int, column: int = 0) -> tuple[int, int] | None:
        """The last entry whose field `column` is at most `value`; both columns grow from entry to entry."""
        entry = self._entry
        tail = self._tail
        if tail and entry.unpack_from(tail)[column] <= value:
            return _floor_in(tail, entry, value, column)
        recent = self._recent
        if (
            recent
            and entry.unpack_from(recent)[column] <= value
            and value < entry.unpack_from(recent, len(recent) - entry.size)[column]
        ):
            return _floor_in(recent, entry, value, column)
        if not self.disk_bytes():
            return None
        fd = self._files.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            page = self._recent = self._page(fd, value, column)
        finally:
            self._files.close(fd)
        return _floor_in(page, entry, value, column)

    def floor_count(self, value: int, column: int = 0) -> int:
        """How many entries have a field `column` of at most `value`."""
        return bisect_right(range(self.count), value, key=lambda number: self.entry(number)[column])

    def _page(self, fd: int, value: int, column: int) -> bytes:
        """A short run of entries from the file that holds the one looked for."""
        entry, size = self._entry, self._entry.size
        low, high = 0, self.disk_bytes() // size
        while high - low > _PAGE_ENTRIES:
            middle = (low + high) // 2
            if entry.unpack(self._files.pread(fd, size, middle * size))[column] <= value:
                low = middle
            else:
                high = middle
        return self._files.pread(fd, (high - low) * size, low * size)


def _floor_in(
    data: bytes | bytearray, entry: struct.Struct, value: int, column: int
) -> tuple[int, int] | None:
    size = entry.size
    count = len(data) // size
    found = bisect_right(range(count), value, key=lambda i: entry.unpack_from(data, i * size)[column])
    return entry.unpack_from(data, (found - 1) * size) if found else None
