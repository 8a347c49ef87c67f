"""The files of a cleaned segment, under names that nobody takes for a segment until the broker swaps them
in.
"""

import os

import numpy as np

from mainstem.records.batch import HEADER_SIZE, BatchHeader, read_header
from mainstem.records.columnar import index_entries, retain
from mainstem.records.columnar.layout import Bytes, Int64s, Table
from mainstem.records.compression import Codec, compress
from mainstem.records.record import assemble
from mainstem.storage.cleaner.names import CLEANED_SUFFIX
from mainstem.storage.files.checkpoints import sync_path, write_all, write_file
from mainstem.storage.files.files import Files
from mainstem.storage.producers.transaction_index import TXN_INDEX_SUFFIX, AbortedTransaction, write_entries
from mainstem.storage.segments.segment import INDEX_SUFFIX, LOG_SUFFIX, NO_TIMESTAMP, TIME_INDEX_SUFFIX

_OFFSET_ENTRIES = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRIES = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])


class CleanedSegment:
    """A segment that is being written. Everything in it is on disk after `finish`."""

    def __init__(self, files: Files, directory: str, base_offset: int, index_interval_bytes: int) -> None:
        self._files = files
        self._stem = f"{directory}/{base_offset:020d}"
        self.base_offset = base_offset
        self._interval_bytes = index_interval_bytes
        self._state: Int64s = np.zeros(index_entries.INDEX_STATE, np.int64)
        self._state[index_entries.MAX_TIMESTAMP] = NO_TIMESTAMP
        self._state[index_entries.MAX_TIMESTAMP_OFFSET] = base_offset
        self._state[index_entries.LAST_TIMESTAMP] = NO_TIMESTAMP
        self._offset_entries: list[Int64s] = []
        self._time_entries: list[Int64s] = []
        self.aborted: list[AbortedTransaction] = []
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._fd = files.open(self._path(LOG_SUFFIX), flags, 0o644)

    @property
    def size(self) -> int:
        return int(self._state[index_entries.POSITION])

    @property
    def max_timestamp(self) -> int:
        return int(self._state[index_entries.MAX_TIMESTAMP])

    @property
    def max_timestamp_offset(self) -> int:
        return int(self._state[index_entries.MAX_TIMESTAMP_OFFSET])

    def _path(self, suffix: str) -> str:
        return f"{self._stem}{suffix}{CLEANED_SUFFIX}"

    def write(self, out: Bytes, batches: Table, results: Int64s) -> int:
        """Add what `retain` has left of these batches; returns the number of bytes."""
        rows = results.reshape(-1, retain.RESULT_COLUMNS)
        is_there = rows[:, retain.KIND] != retain.GONE
        rows, last_offsets = rows[is_there], batches["last_offset"][is_there]
        if rows.shape[0] == 0:
            return 0
        sizes = np.ascontiguousarray(rows[:, retain.OUT_SIZE])
        data = memoryview(out.data)
        if (rows[:, retain.KIND] == retain.TO_COMPRESS).any():
            data = memoryview(_compressed(data, rows, sizes))
        write_all(self._files, self._fd, data[: int(sizes.sum())])
        self._index(sizes, np.ascontiguousarray(last_offsets), rows[:, retain.MAX_TIMESTAMP].copy())
        return int(sizes.sum())

    def _index(self, sizes: Int64s, last_offsets: Int64s, timestamps: Int64s) -> None:
        offsets, times = (np.empty(2 * sizes.size, np.int64) for _ in range(2))
        index_entries.index_batches(
            sizes, last_offsets, timestamps, self._interval_bytes, self._state, offsets, times
        )
        self._offset_entries.append(offsets[: 2 * self._state[index_entries.OFFSET_ENTRIES]])
        self._time_entries.append(times[: 2 * self._state[index_entries.TIME_ENTRIES]])

    def finish(self, modified_ns: int) -> None:
        """Write the indexes and bring all of it to disk. The file is as old as the youngest that it replaces,
        which retention goes by when records have no timestamps.
        """
        if self.max_timestamp > self._state[index_entries.LAST_TIMESTAMP]:
            self._time_entries.append(np.array([self.max_timestamp, self.max_timestamp_offset], np.int64))
        self._files.set_modified_ns(self._fd, modified_ns)
        self._files.fsync(self._fd)
        self._files.close(self._fd)
        self._fd = -1
        self._write_index(INDEX_SUFFIX, self._packed(self._offset_entries, _OFFSET_ENTRIES, "offset"))
        self._write_index(TIME_INDEX_SUFFIX, self._packed(self._time_entries, _TIME_ENTRIES, "timestamp"))
        if self.aborted:
            path = self._path(TXN_INDEX_SUFFIX)
            write_entries(self._files, path, self.aborted)
            sync_path(self._files, path)

    def _packed(self, entries: list[Int64s], layout: np.dtype[np.void], first: str) -> bytes:
        """Entries in Kafka's format, their offsets relative to the segment's."""
        pairs = np.concatenate([np.empty(0, np.int64), *entries]).reshape(-1, 2)
        packed = np.empty(pairs.shape[0], layout)
        names = layout.names or ()
        for column, name in enumerate(names):
            packed[name] = pairs[:, column] - (self.base_offset if name == "offset" else 0)
        return packed.tobytes()

    def _write_index(self, suffix: str, content: bytes) -> None:
        write_file(self._files, self._path(suffix), content, sync=True)

    def close(self) -> None:
        if self._fd >= 0:
            self._files.close(self._fd)
            self._fd = -1


def _compressed(out: memoryview, rows: Int64s, sizes: Int64s) -> bytes:
    """The batches, those among them compressed that still have to be; their sizes are brought up to date."""
    parts: list[bytes | bytearray | memoryview] = []
    columns = (rows[:, column].tolist() for column in (retain.OUT_START, retain.OUT_SIZE, retain.KIND))
    for number, (start, size, kind) in enumerate(zip(*columns, strict=True)):
        part: bytes | bytearray | memoryview = out[start : start + size]
        if kind == retain.TO_COMPRESS:
            part = _compress(read_header(part), out[start + HEADER_SIZE : start + size])
            sizes[number] = len(part)
        parts.append(part)
    return b"".join(parts)


def _compress(header: BatchHeader, records: memoryview) -> bytearray:
    codec = Codec(header.attributes & 0x07)
    return assemble(header, compress(codec, records))
