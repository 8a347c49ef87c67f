"""One segment of a log: its file, its two indexes, and the numbers that appends keep up to date.

Its file is opened on first use and may be closed again by the handle cache at any time. A batch is written
whole or not at all: a write that fails half-way is cut off again before anybody hears of it.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import NoReturn

from mainstem.config import LogConfig
from mainstem.records.batch import BatchHeader
from mainstem.storage.files.file_range import FileHandle, HandleCache
from mainstem.storage.producers.transaction_index import TXN_INDEX_SUFFIX
from mainstem.storage.segments.index import OFFSET_ENTRY, TIME_ENTRY, SparseIndex
from mainstem.storage.segments.index_builder import IndexBuilder
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

# A file below this size reserves nothing: a thousand small partitions must not each hold megabytes.
_FIRST_RESERVE_AT = 1 << 20


class TornWriteError(Exception):
    """A write has failed and what it left in the file could not be cut off."""

    def __init__(self, write_error: OSError, cut_error: OSError) -> None:
        super().__init__(str(cut_error))
        self.write_error = write_error


class Segment:
    """Batches from `base_offset` on. `size` is where the next one is written."""

    __slots__ = (
        "_cache",
        "_directory",
        "_files",
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
        self._files = cache.files
        self.base_offset = base_offset
        self.size = size
        self.created_ms = created_ms
        self.handle: FileHandle | None = None
        # A write that begins behind this position asks for more blocks first.
        self.reserved = _FIRST_RESERVE_AT
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

    def __repr__(self) -> str:
        return f"Segment({self.path(LOG_SUFFIX)}, size={self.size})"

    def path(self, suffix: str) -> str:
        return f"{self._directory}/{self.base_offset:020d}{suffix}"

    def moved_to(self, directory: str) -> None:
        """The partition's folder has a new name."""
        self._directory = directory
        self._offset_index = self._time_index = None

    def forget_file(self) -> None:
        """Another will take its place: it is closed, and for the new one no blocks are reserved."""
        self.close()
        self.reserved = _FIRST_RESERVE_AT

    def file(self) -> FileHandle:
        """The open file."""
        handle = self.handle
        if handle is None:
            handle = self._cache.open(self, self.path(LOG_SUFFIX))
        handle.used = True
        return handle

    # ---- appending

    def append(
        self,
        data: memoryview,
        size: int,
        last_offset: int,
        max_timestamp: int,
        index_interval_bytes: int,
        index_bytes_max: int,
    ) -> OSError | None:
        """Write a batch behind the others; OSError or TornWriteError when that is not possible. That its
        index entry cannot be written is no reason to refuse a batch that is in the file: it is returned.
        """
        position = self.size
        handle = self.handle
        if handle is None or position > self.reserved:
            handle = self._prepare_write()
        handle.used = True
        try:
            written = self._files.pwrite(handle.fd, data, position)
            while written != size:
                written += self._files.pwrite(handle.fd, data[written:], position + written)
        except OSError as error:
            self._undo_write(handle, error)
        self.size = position + size
        if max_timestamp > self.known_max_timestamp:
            self.known_max_timestamp = max_timestamp
            self.known_max_timestamp_offset = last_offset
        failure = None
        if self.bytes_since_index > index_interval_bytes:
            try:
                self.index_batch(last_offset, position, index_bytes_max)
            except OSError as error:
                failure = error
        self.bytes_since_index += size
        return failure

    def append_all(
        self,
        data: memoryview,
        batches: Sequence[BatchHeader],
        index_interval_bytes: int,
        index_bytes_max: int,
    ) -> OSError | None:
        """The same for several batches that stand in `data` one after the other, with a single write."""
        position, size = self.size, len(data)
        handle = self._prepare_write()
        try:
            written = self._files.pwrite(handle.fd, data, position)
            while written != size:
                written += self._files.pwrite(handle.fd, data[written:], position + written)
        except OSError as error:
            self._undo_write(handle, error)
        failure = None
        for header in batches:
            if header.max_timestamp > self.known_max_timestamp:
                self.known_max_timestamp = header.max_timestamp
                self.known_max_timestamp_offset = header.last_offset
            if self.bytes_since_index > index_interval_bytes:
                try:
                    self.index_batch(header.last_offset, self.size, index_bytes_max)
                except OSError as error:
                    failure = error
            self.bytes_since_index += header.size
            self.size += header.size
        return failure

    def _prepare_write(self) -> FileHandle:
        if self.handle is None and self.size == 0:
            self.write_indexes()  # tools that look at a live folder expect the files
        handle = self.file()
        if self.size > self.reserved:
            self.reserved = self._files.reserve(handle.fd, self.size)
        return handle

    def _undo_write(self, handle: FileHandle, error: OSError) -> NoReturn:
        if self.size == 0:
            self.roll_timestamp = ROLL_UNDECIDED  # it was worked out from the batch that did not get in
        self.reserved = _FIRST_RESERVE_AT
        try:
            self._files.ftruncate(handle.fd, self.size)
        except OSError as cut_error:
            raise TornWriteError(error, cut_error) from error
        raise error

    def has_room(
        self, size: int, last_offset: int, max_timestamp: int, now_ms: int, config: LogConfig
    ) -> bool:
        """Whether this batch may follow the others, or a new segment has to begin with it."""
        if last_offset > self.base_offset + RELATIVE_OFFSET_MAX:
            return False
        return self.size == 0 or (
            self.size + size <= config.segment_bytes
            and last_offset <= self.max_offset
            and not self._is_old(max_timestamp, now_ms, config)
        )

    def _is_old(self, max_timestamp: int, now_ms: int, config: LogConfig) -> bool:
        """By the timestamps of its first batch and the new one; by the clock when batches have none."""
        first = self.first_timestamp()
        waited_ms = max_timestamp - first if first >= 0 else now_ms - self.created_ms
        return waited_ms > config.max_segment_ms - self.jitter_ms

    def decide_roll(self, max_timestamp: int, config: LogConfig) -> None:
        """Work out once, before a batch with this timestamp, what the next appends then only compare with."""
        if self.size == 0:
            self.rolling_timestamp = max_timestamp
        self.load_max_timestamp()
        first = self.first_timestamp()
        if first >= 0:
            self.roll_timestamp = first + config.max_segment_ms - self.jitter_ms

    def settings_changed(self) -> None:
        """Have the next append find out again when the log rolls."""
        self.roll_timestamp = ROLL_UNDECIDED

    # ---- indexes

    @property
    def offset_index(self) -> SparseIndex:
        if not self._indexes_checked:
            self._check_indexes()
        if self._offset_index is None:
            self._offset_index = SparseIndex(self._files, self.path(INDEX_SUFFIX), OFFSET_ENTRY)
        return self._offset_index

    @property
    def time_index(self) -> SparseIndex:
        if not self._indexes_checked:
            self._check_indexes()
        if self._time_index is None:
            self._time_index = SparseIndex(self._files, self.path(TIME_INDEX_SUFFIX), TIME_ENTRY)
        return self._time_index

    def _check_indexes(self) -> None:
        self._indexes_checked = True
        if not self.indexes_are_sane():
            self.rebuild_indexes()

    def indexes_are_sane(self) -> bool:
        """Whether the index files fit the log as far as their sizes and their first and last entries show."""
        offsets, times = self.path(INDEX_SUFFIX), self.path(TIME_INDEX_SUFFIX)
        try:
            offset_bytes, time_bytes = self._files.stat(offsets).st_size, self._files.stat(times).st_size
        except FileNotFoundError:
            return self.size == 0
        if offset_bytes % OFFSET_ENTRY.size or time_bytes % TIME_ENTRY.size:
            return False
        offset_index = SparseIndex(self._files, offsets, OFFSET_ENTRY, offset_bytes)
        time_index = SparseIndex(self._files, times, TIME_ENTRY, time_bytes)
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
        for position, header in iter_batch_headers(self.file(), 0, self.size):
            builder.add(position, header.size, header.last_offset, header.max_timestamp)
        self.install_indexes(builder)

    def install_indexes(self, builder: IndexBuilder) -> None:
        """Replace both indexes by the builder's; it has seen all batches of this segment."""
        offset_entries, time_entries = builder.finish()
        offset_index = SparseIndex(self._files, self.path(INDEX_SUFFIX), OFFSET_ENTRY)
        offset_index.replace(offset_entries)
        time_index = SparseIndex(self._files, self.path(TIME_INDEX_SUFFIX), TIME_ENTRY)
        time_index.replace(time_entries)
        self._offset_index, self._time_index = offset_index, time_index
        self._indexes_checked = True
        self.known_max_timestamp, self.known_max_timestamp_offset = (
            builder.max_timestamp,
            builder.max_timestamp_offset,
        )

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
        if self.reserved != _FIRST_RESERVE_AT or self._files.fstat(fd).st_size != self.size:
            self._files.ftruncate(fd, self.size)
            self.reserved = _FIRST_RESERVE_AT

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
        return int(self._files.stat(self.path(LOG_SUFFIX)).st_mtime * 1000)

    def first_timestamp(self) -> int:
        """The max timestamp of the first batch, from which the age of the segment counts; -1 without one."""
        if self.rolling_timestamp is None and self.size:
            for _, header in iter_batch_headers(self.file(), 0, self.size):
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
        found = find_offset(self.file(), boundary[0] if boundary else 0, self.size, offset)
        return found[0] if found else None

    def next_offset(self) -> int:
        """What follows the last batch, found in the file."""
        if self.size == 0:
            return self.base_offset
        last = self.offset_index.last()
        boundary = self._followed(last) if last else None
        return last_boundary(self.file(), boundary[0] if boundary else 0, self.size)[1]

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
        base_offset = base_offset_at(self.file(), position, self.size, self.base_offset, last_offset)
        return None if base_offset is None else (position, base_offset)

    def boundary_before(self, position: int, limit: int) -> tuple[int, int]:
        """The last batch boundary between `position` and `limit`, and the offset that follows it."""
        boundary = self._boundary_in_index(limit, 1)
        if boundary is not None and boundary[0] > position:
            if (limit - boundary[0]) * _BOUNDARY_LOSS < limit - position:
                return boundary  # so close to the limit that a few more batches are not worth a look
            position = boundary[0]
        return last_boundary(self.file(), position, limit)

    def remember(self, offset: int, position: int) -> None:
        """A reader that got everything before `offset` will soon ask for it: it is at this boundary."""
        positions = self._positions
        if positions is None:
            positions = self._positions = {}
        elif len(positions) >= _HINTS_MAX and offset not in positions:
            del positions[next(iter(positions))]
        positions[offset] = position

    # ---- cutting and removing

    def truncate_to(self, offset: int) -> None:
        """Remove the batches that reach `offset`."""
        position = self.position_of(offset)
        if position is not None:
            self.cut_at(position, offset)

    def cut_at(self, position: int, offset: int) -> None:
        """Cut the file at a batch boundary; indexes keep what lies before `offset`."""
        offset_index, time_index = self.offset_index, self.time_index
        relative = offset - self.base_offset - 1
        offset_index.truncate(offset_index.floor_count(relative))
        time_index.truncate(time_index.floor_count(relative, 1))
        self._files.ftruncate(self.file().fd, position)
        self.size = position
        self.reserved = _FIRST_RESERVE_AT
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
        for _, header in iter_batch_headers(self.file(), start, self.size):
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
                self._files.rename(path, path + DELETED_SUFFIX)
            except FileNotFoundError:
                continue
            renamed.append(path + DELETED_SUFFIX)
        return renamed
