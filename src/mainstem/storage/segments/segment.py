"""One segment of a log: its file, its two indexes, and the numbers that appends keep up to date.

The log writes the active segment itself, for speed; whatever else happens to a segment happens here. Its file
is opened on first use and may be closed again by the handle cache at any time.
"""

import logging
import os
from collections.abc import Iterable

from mainstem.storage.files.block_reserve import FIRST_RESERVE_AT
from mainstem.storage.files.file_range import FileHandle, HandleCache
from mainstem.storage.producers.transaction_index import TXN_INDEX_SUFFIX
from mainstem.storage.segments.index import OFFSET_ENTRY, TIME_ENTRY, SparseIndex
from mainstem.storage.segments.scan import base_offset_at, find_offset, iter_batch_headers, last_boundary

logger = logging.getLogger(__name__)

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
DELETED_SUFFIX = ".deleted"
SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, ".snapshot")

RELATIVE_OFFSET_MAX = 2**31 - 1
NO_TIMESTAMP = -1
_UNKNOWN = -2
# Below every timestamp, so that the next append takes the careful path, which finds out.
ROLL_UNDECIDED = -(2**63) - 1
_HINTS_MAX = 16
# A read may end earlier than its limit by this part of it.
_BOUNDARY_LOSS = 16


class Segment:
    """Batches from `base_offset` on. `size` is where the next one is written."""

    __slots__ = (
        "_cache",
        "_directory",
        "_indexes_checked",
        "_offset_index",
        "_positions",
        "_time_index",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "handle",
        "jitter_ms",
        "known_max_timestamp",
        "known_max_timestamp_offset",
        "max_offset",
        "reserved",
        "roll_timestamp",
        "rolling_timestamp",
        "size",
    )

    def __init__(
        self, directory: str, base_offset: int, size: int, created_ms: int, cache: HandleCache
    ) -> None:
        self._directory = directory
        self._cache = cache
        self.base_offset = base_offset
        self.size = size
        self.created_ms = created_ms
        self.handle: FileHandle | None = None
        # A write that begins behind this position asks for more blocks first.
        self.reserved = FIRST_RESERVE_AT
        self.bytes_since_index = 0
        self.jitter_ms = 0
        # The largest offset that an append may bring without the careful path; lowered when an index is full.
        self.max_offset = base_offset + RELATIVE_OFFSET_MAX
        # A batch with a later timestamp than this makes the log roll.
        self.roll_timestamp = ROLL_UNDECIDED
        self.rolling_timestamp: int | None = None
        # Kept by appends; unknown after a start until somebody asks, see `max_timestamp`.
        self.known_max_timestamp = _UNKNOWN if size else NO_TIMESTAMP
        self.known_max_timestamp_offset = base_offset
        self._offset_index: SparseIndex | None = None
        self._time_index: SparseIndex | None = None
        self._indexes_checked = size == 0
        self._positions: dict[int, int] | None = None

    @classmethod
    def create(
        cls, directory: str, base_offset: int, now_ms: int, cache: HandleCache, preallocate_bytes: int = 0
    ) -> "Segment":
        """A new, empty segment with its file. Its indexes come with the first batch."""
        segment = cls(directory, base_offset, 0, now_ms, cache)
        path = segment.path(LOG_SUFFIX)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            if preallocate_bytes:
                os.posix_fallocate(fd, 0, preallocate_bytes)
        except OSError:
            os.unlink(path)
            raise
        finally:
            os.close(fd)
        return segment

    def __repr__(self) -> str:
        return f"Segment({self.path(LOG_SUFFIX)}, size={self.size})"

    def path(self, suffix: str) -> str:
        return f"{self._directory}/{self.base_offset:020d}{suffix}"

    def moved_to(self, directory: str) -> None:
        """The partition's folder has a new name."""
        self._directory = directory
        self._offset_index = self._time_index = None

    def file(self) -> FileHandle:
        """The open file."""
        handle = self.handle
        if handle is None:
            handle = self._cache.open(self, self.path(LOG_SUFFIX))
        handle.used = True
        return handle

    # ---- indexes

    @property
    def offset_index(self) -> SparseIndex:
        if not self._indexes_checked:
            self._check_indexes()
        if self._offset_index is None:
            self._offset_index = SparseIndex(self.path(INDEX_SUFFIX), OFFSET_ENTRY)
        return self._offset_index

    @property
    def time_index(self) -> SparseIndex:
        if not self._indexes_checked:
            self._check_indexes()
        if self._time_index is None:
            self._time_index = SparseIndex(self.path(TIME_INDEX_SUFFIX), TIME_ENTRY)
        return self._time_index

    def _check_indexes(self) -> None:
        self._indexes_checked = True
        if not self.indexes_are_sane():
            self.rebuild_indexes()

    def indexes_are_sane(self) -> bool:
        """Whether the index files fit the log as far as their sizes and their first and last entries show."""
        offsets, times = self.path(INDEX_SUFFIX), self.path(TIME_INDEX_SUFFIX)
        try:
            offset_bytes, time_bytes = os.stat(offsets).st_size, os.stat(times).st_size
        except FileNotFoundError:
            return self.size == 0
        if offset_bytes % OFFSET_ENTRY.size or time_bytes % TIME_ENTRY.size:
            return False
        offset_index = SparseIndex(offsets, OFFSET_ENTRY, offset_bytes)
        time_index = SparseIndex(times, TIME_ENTRY, time_bytes)
        if last := offset_index.last():
            first = offset_index.entry(0)
            grows = offset_index.count == 1 or (first[0] < last[0] and first[1] < last[1])
            if not grows or first[0] < 0 or last[1] >= self.size:
                return False
        if last := time_index.last():
            first = time_index.entry(0)
            grows = time_index.count == 1 or (first[0] < last[0] and first[1] <= last[1])
            if not grows or first[1] < 0:
                return False
        self._offset_index, self._time_index = offset_index, time_index
        return True

    def rebuild_indexes(self, interval_bytes: int = 4096) -> None:
        """Make both indexes again from the batch headers."""
        builder = IndexBuilder(self.base_offset, interval_bytes)
        for position, header in iter_batch_headers(self.file().fd, 0, self.size):
            builder.add(position, header.size, header.last_offset, header.max_timestamp)
        self.install_indexes(builder)

    def install_indexes(self, builder: "IndexBuilder") -> None:
        """Replace both indexes by the builder's; it has seen all batches of this segment."""
        offset_entries, time_entries = builder.finish()
        offset_index = SparseIndex(self.path(INDEX_SUFFIX), OFFSET_ENTRY)
        offset_index.replace(offset_entries)
        time_index = SparseIndex(self.path(TIME_INDEX_SUFFIX), TIME_ENTRY)
        time_index.replace(time_entries)
        self._offset_index, self._time_index = offset_index, time_index
        self._indexes_checked = True
        self.known_max_timestamp, self.known_max_timestamp_offset = (
            builder.max_timestamp,
            builder.max_timestamp_offset,
        )

    def saw_batch(
        self,
        position: int,
        size: int,
        last_offset: int,
        timestamp: int,
        interval_bytes: int,
        index_bytes_max: int,
    ) -> None:
        """Bookkeeping for a batch that was written; the leader's append does the same by itself."""
        if timestamp > self.max_timestamp:
            self.known_max_timestamp, self.known_max_timestamp_offset = timestamp, last_offset
        if self.bytes_since_index > interval_bytes:
            self.index_batch(last_offset, position, index_bytes_max)
        self.bytes_since_index += size

    def index_batch(self, last_offset: int, position: int, index_bytes_max: int) -> None:
        """Add the batch at `position` to the indexes. When one is full, the next append looks and rolls."""
        offset_index, time_index = self.offset_index, self.time_index
        offset_index.append(last_offset - self.base_offset, position)
        self._index_max_timestamp(time_index)
        if (
            offset_index.count >= index_bytes_max // OFFSET_ENTRY.size
            or time_index.count >= index_bytes_max // TIME_ENTRY.size - 1
        ):
            self.max_offset = -1
        self.bytes_since_index = 0

    def _index_max_timestamp(self, time_index: SparseIndex) -> None:
        timestamp, offset = self.max_timestamp, self.known_max_timestamp_offset
        last = time_index.last()
        relative = offset - self.base_offset
        if timestamp >= 0 and (last is None or (timestamp > last[0] and relative >= last[1])):
            time_index.append(timestamp, relative)

    def write_indexes(self) -> None:
        """Bring both index files up to date; the time index ends with the largest timestamp."""
        self._index_max_timestamp(self.time_index)
        self.offset_index.write()
        self.time_index.write()

    def seal(self) -> None:
        """No more batches will come: the indexes are written and what was preallocated is given back."""
        self.write_indexes()
        fd = self.file().fd
        if self.reserved != FIRST_RESERVE_AT or os.fstat(fd).st_size != self.size:
            os.ftruncate(fd, self.size)
            self.reserved = FIRST_RESERVE_AT

    # ---- timestamps

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of the batches here; -1 when none has one."""
        self.load_max_timestamp()
        return self.known_max_timestamp

    @property
    def max_timestamp_offset(self) -> int:
        """The last offset of the batch with the largest timestamp."""
        self.load_max_timestamp()
        return self.known_max_timestamp_offset

    def load_max_timestamp(self) -> None:
        """Know it, from the last entry of the time index, with which a segment that was closed well ends."""
        if self.known_max_timestamp != _UNKNOWN:
            return
        last = self.time_index.last()
        if last is not None:
            self.known_max_timestamp, self.known_max_timestamp_offset = last[0], self.base_offset + last[1]
        else:
            self.rebuild_indexes()

    def largest_timestamp(self) -> int:
        """What retention by time goes by: the largest timestamp, or the file's age when there is none."""
        if self.max_timestamp >= 0:
            return self.max_timestamp
        return int(os.stat(self.path(LOG_SUFFIX)).st_mtime * 1000)

    def first_timestamp(self) -> int:
        """The max timestamp of the first batch, from which the age of the segment counts; -1 without one."""
        if self.rolling_timestamp is None and self.size:
            for _, header in iter_batch_headers(self.file().fd, 0, self.size):
                self.rolling_timestamp = header.max_timestamp
                break
        return NO_TIMESTAMP if self.rolling_timestamp is None else self.rolling_timestamp

    # ---- positions

    def position_of(self, offset: int) -> int | None:
        """Where the first batch begins whose last offset is at least `offset`; None behind the last batch."""
        if offset <= self.base_offset:
            return 0 if self.size else None
        if self._positions is not None:
            known = self._positions.get(offset)
            if known is not None:
                return known if known < self.size else None
        boundary = self._boundary_in_index(offset - self.base_offset)
        found = find_offset(self.file().fd, boundary[0] if boundary else 0, self.size, offset)
        return found[0] if found else None

    def _boundary_in_index(self, value: int, column: int = 0) -> tuple[int, int] | None:
        """The batch of the last entry of the offset index up to `value`: its position and base offset. If the
        entry leads nowhere, the indexes are made again: only their ends were looked at when they were opened.
        """
        entry = self.offset_index.floor(value, column)
        if entry is None:
            return None
        boundary = self._followed(entry)
        if boundary is None:
            logger.warning("rebuilding the indexes of %s: an entry is wrong", self.path(LOG_SUFFIX))
            self.rebuild_indexes()
            entry = self.offset_index.floor(value, column)
            boundary = None if entry is None else self._followed(entry)
        return boundary

    def _followed(self, entry: tuple[int, int]) -> tuple[int, int] | None:
        """Where an entry of the offset index leads; None if there is no such batch."""
        last_offset, position = self.base_offset + entry[0], entry[1]
        base_offset = base_offset_at(self.file().fd, position, self.size, self.base_offset, last_offset)
        return None if base_offset is None else (position, base_offset)

    def boundary_before(self, position: int, limit: int) -> tuple[int, int]:
        """The last batch boundary between `position` and `limit`, and the offset that follows it."""
        boundary = self._boundary_in_index(limit, 1)
        if boundary is not None and boundary[0] > position:
            if (limit - boundary[0]) * _BOUNDARY_LOSS < limit - position:
                return boundary  # so close to the limit that a few more batches are not worth a look
            position = boundary[0]
        return last_boundary(self.file().fd, position, limit)

    def remember(self, offset: int, position: int) -> None:
        """A reader that got everything before `offset` will soon ask for it: it is at this boundary."""
        positions = self._positions
        if positions is None:
            positions = self._positions = {}
        elif len(positions) >= _HINTS_MAX and offset not in positions:
            del positions[next(iter(positions))]
        positions[offset] = position

    # ---- cutting and removing

    def truncate_to(self, offset: int) -> int:
        """Remove the batches that reach `offset`; returns the number of bytes cut off."""
        position = self.position_of(offset)
        if position is None:
            return 0
        cut = self.size - position
        self.cut_at(position, offset)
        return cut

    def cut_at(self, position: int, offset: int) -> None:
        """Cut the file at a batch boundary; indexes keep what lies before `offset`."""
        offset_index, time_index = self.offset_index, self.time_index
        relative = offset - self.base_offset - 1
        offset_index.truncate(offset_index.floor_count(relative))
        time_index.truncate(time_index.floor_count(relative, 1))
        os.ftruncate(self.file().fd, position)
        self.size = position
        self.reserved = FIRST_RESERVE_AT
        self.bytes_since_index = 0
        self._positions = None
        self.max_offset = self.base_offset + RELATIVE_OFFSET_MAX
        self.roll_timestamp = ROLL_UNDECIDED
        if position == 0:
            self.rolling_timestamp = None
        self._find_max_timestamp()

    def _find_max_timestamp(self) -> None:
        """The largest timestamp after a cut: the last index entry, or a batch behind it."""
        last = self.time_index.last()
        self.known_max_timestamp, self.known_max_timestamp_offset = NO_TIMESTAMP, self.base_offset
        start = 0
        if last is not None:
            self.known_max_timestamp, self.known_max_timestamp_offset = last[0], self.base_offset + last[1]
            entry = self.offset_index.floor(last[1])
            start = entry[1] if entry else 0
        for _, header in iter_batch_headers(self.file().fd, start, self.size):
            if header.max_timestamp > self.known_max_timestamp:
                self.known_max_timestamp = header.max_timestamp
                self.known_max_timestamp_offset = header.last_offset

    def close(self) -> None:
        self._cache.forget(self)

    def mark_deleted(self, suffixes: Iterable[str] = SEGMENT_SUFFIXES) -> list[str]:
        """Rename the files so that they count as gone; returns the paths to remove later."""
        self.close()
        renamed = []
        for suffix in suffixes:
            path = self.path(suffix)
            try:
                os.rename(path, path + DELETED_SUFFIX)
            except FileNotFoundError:
                continue
            renamed.append(path + DELETED_SUFFIX)
        return renamed


class IndexBuilder:
    """Collects the entries of both indexes while somebody walks a segment from its start."""

    __slots__ = (
        "_base_offset",
        "_interval_bytes",
        "_last_timestamp",
        "_offset_entries",
        "_since_entry",
        "_time_entries",
        "max_timestamp",
        "max_timestamp_offset",
    )

    def __init__(self, base_offset: int, interval_bytes: int) -> None:
        self._base_offset = base_offset
        self._interval_bytes = interval_bytes
        self._since_entry = 0
        self._offset_entries = bytearray()
        self._time_entries = bytearray()
        self._last_timestamp = NO_TIMESTAMP
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset

    def add(self, position: int, size: int, last_offset: int, timestamp: int) -> None:
        if timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = timestamp, last_offset
        if self._since_entry > self._interval_bytes:
            self._offset_entries += OFFSET_ENTRY.pack(last_offset - self._base_offset, position)
            self._add_time_entry()
            self._since_entry = 0
        self._since_entry += size

    def _add_time_entry(self) -> None:
        if self.max_timestamp > self._last_timestamp:
            self._time_entries += TIME_ENTRY.pack(
                self.max_timestamp, self.max_timestamp_offset - self._base_offset
            )
            self._last_timestamp = self.max_timestamp

    def finish(self) -> tuple[bytearray, bytearray]:
        """The entries of the offset index and of the time index."""
        self._add_time_entry()
        return self._offset_entries, self._time_entries
