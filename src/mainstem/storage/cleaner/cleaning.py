"""Cleaning one log: the keys of its dirty part first, then a new segment for each group of old ones.

Nothing of the log is changed here. The rules are Kafka's: what is dirty decides which records go, and
everything before it, and itself, is gone over.
"""

import struct
import time
from collections.abc import Callable

import numpy as np

from mainstem.records.batch import (
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    PRODUCER_EPOCH_POSITION,
    TRANSACTIONAL_MASK,
)
from mainstem.records.columnar import index_entries, retain
from mainstem.records.columnar.errors import OK, REASONS, CorruptRecordsError
from mainstem.records.columnar.layout import Bytes, Int64s, Table
from mainstem.storage.cleaner.grouping import SegmentSizes, group_segments
from mainstem.storage.cleaner.jobs import CleanedGroup, Finished, Job
from mainstem.storage.cleaner.keys import KeyMap
from mainstem.storage.cleaner.reading import Piece, PieceReader
from mainstem.storage.cleaner.throttle import Throttle
from mainstem.storage.cleaner.transactions import TransactionTracker
from mainstem.storage.cleaner.writing import CleanedSegment
from mainstem.storage.files.checkpoints import sync_path
from mainstem.storage.files.files import Files
from mainstem.storage.producers.transaction_index import AbortedTransaction, read_entries
from mainstem.storage.segments.index import OFFSET_ENTRY, SparseIndex
from mainstem.storage.segments.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX

_EPOCH = struct.Struct(">h")
_BUFFER_BYTES_MIN = 64 * 1024


class Cleaning:
    """One job, from its keys to its last group."""

    def __init__(
        self,
        files: Files,
        job: Job,
        report: Callable[[CleanedGroup], None],
        may_go_on: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files = files
        self._job = job
        self._report = report
        self._may_go_on = may_go_on
        self._now = now
        self._pieces = PieceReader(files, max(job.limits.buffer_bytes, _BUFFER_BYTES_MIN))
        self._throttle = Throttle(job.limits.bytes_per_second)
        self._keys = KeyMap(job.limits.map_bytes, job.limits.load_factor)
        self._aborted: list[AbortedTransaction] = [
            entry for base in job.transaction_indexes for entry in read_entries(files, job.directory, base)
        ]
        self._out: Bytes = np.empty(0, np.uint8)
        self._scratch: Int64s = np.empty(0, np.int64)
        self._last_offsets: Int64s = np.array(sorted(job.last_offsets.values()), np.int64)
        self.bytes_read = 0
        self.bytes_written = 0
        self._facts: Int64s = np.zeros(retain.RETAIN_FACTS, np.int64)

    def run(self) -> Finished:
        started = self._now()
        self._index_keys()
        end_offset = self._keys.latest_offset + 1
        segments = [self._sizes(base, size) for base, size in self._job.segments if base < end_offset]
        tracker = TransactionTracker(self._aborted)
        for group in group_segments(
            segments,
            self._job.segment_bytes,
            self._job.index_bytes_max,
            self._job.first_uncleanable_offset,
        ):
            self._report(self._clean_group(group, tracker))
        return Finished(
            end_offset=end_offset,
            bytes_read=self.bytes_read,
            bytes_written=self.bytes_written,
            records_read=int(self._facts[retain.RECORDS_READ]),
            records_kept=int(self._facts[retain.RECORDS_KEPT]),
            keys=len(self._keys),
            milliseconds=int((self._now() - started) * 1000),
        )

    def _path(self, base_offset: int, suffix: str = LOG_SUFFIX) -> str:
        return f"{self._job.directory}/{base_offset:020d}{suffix}"

    def _sizes(self, base_offset: int, size: int) -> SegmentSizes:
        index, time_index = (
            self._size_of(self._path(base_offset, suffix)) for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX)
        )
        return SegmentSizes(base_offset, size, index, time_index)

    def _size_of(self, path: str) -> int:
        try:
            return self._files.stat(path).st_size
        except FileNotFoundError:
            return 0

    # ---- the keys

    def _index_keys(self) -> None:
        """Fill the map from the first dirty offset on, as far as it goes."""
        job, keys = self._job, self._keys
        # The markers of the others are passed already.
        ended_later = [entry for entry in self._aborted if entry.last_offset >= job.first_dirty_offset]
        tracker = TransactionTracker(ended_later)
        bases = [base for base, _ in job.segments]
        for number, (base, size) in enumerate(job.segments):
            following = bases[number + 1] if number + 1 < len(bases) else job.first_uncleanable_offset
            if following <= job.first_dirty_offset:
                continue
            for piece in self._pieces.read(self._path(base), self._dirty_from(base), size):
                self._moved(len(piece.data), read=True)
                self._index_piece(piece, tracker)
                if keys.is_full:
                    return
            # Offsets that were cleaned away before have nothing to say.
            keys.speak_for(following - 1)

    def _dirty_from(self, base_offset: int) -> int:
        """Where in its segment the dirty part begins, or a little before."""
        relative = self._job.first_dirty_offset - base_offset
        if relative <= 0:
            return 0
        entry = SparseIndex(self._files, self._path(base_offset, INDEX_SUFFIX), OFFSET_ENTRY).floor(relative)
        return entry[1] if entry else 0

    def _index_piece(self, piece: Piece, tracker: TransactionTracker) -> None:
        batches = piece.batches
        batches["wanted"] = 1
        for row, is_control, is_void in _transactional_rows(piece, tracker):
            if is_control or is_void:
                batches["wanted"][row] = 0
        self._keys.add(piece.unpack(batches["wanted"]), batches, self._job.first_dirty_offset)

    # ---- the segments

    def _clean_group(self, group: list[SegmentSizes], tracker: TransactionTracker) -> CleanedGroup:
        job = self._job
        cleaned = CleanedSegment(self._files, job.directory, group[0].base_offset, job.index_interval_bytes)
        try:
            for segment in group:
                path = self._path(segment.base_offset)
                for piece in self._pieces.read(path, 0, segment.size):
                    self._moved(len(piece.data), read=True)
                    self._moved(self._clean_piece(piece, tracker, cleaned), read=False)
            cleaned.aborted = tracker.take_retained()
            cleaned.finish(self._files.stat(self._path(group[-1].base_offset)).st_mtime_ns)
            sync_path(self._files, job.directory)
        finally:
            cleaned.close()
        return CleanedGroup(
            [segment.base_offset for segment in group],
            cleaned.size,
            cleaned.max_timestamp,
            cleaned.max_timestamp_offset,
            bool(cleaned.aborted),
        )

    def _clean_piece(self, piece: Piece, tracker: TransactionTracker, cleaned: CleanedSegment) -> int:
        """Write what stays of a piece; returns the number of bytes."""
        job, batches, keys = self._job, piece.batches, self._keys
        rules = self._rules(piece, tracker)
        plain = piece.unpack((rules & (retain.DELETE_BATCH | retain.DISCARD_RECORDS) == 0).astype(np.int64))
        records = int(batches["record_count"].clip(0).sum())
        self._make_room(len(piece.data) + plain.size + retain.RECORD_GROWTH_MAX * records, batches)
        results = np.empty(batches.size * retain.RESULT_COLUMNS, np.int64)
        mistake = retain.retain(
            piece.octets, plain, batches, rules, keys.secret, keys.table, keys.latest_offset,
            job.now_ms, job.delete_retention_ms, self._scratch, self._out, results, self._facts,
        )  # fmt: skip
        if mistake != OK:
            row = int(self._facts[retain.FAILED_BATCH])
            raise CorruptRecordsError(int(batches["base_offset"][row]), REASONS[mistake])
        return cleaned.write(self._out, batches, results)

    def _make_room(self, bytes_max: int, batches: Table) -> None:
        bytes_max += batches.size * 61
        if self._out.size < bytes_max:
            self._out = np.empty(bytes_max, np.uint8)
        scratch = int(batches["record_count"].max(initial=0)) * retain.SCRATCH_COLUMNS
        if self._scratch.size < scratch:
            self._scratch = np.empty(scratch, np.int64)

    def _rules(self, piece: Piece, tracker: TransactionTracker) -> Int64s:
        """What is known of each batch before its records are looked at."""
        job, batches = self._job, piece.batches
        stays = batches["last_offset"] + 1 == job.first_uncleanable_offset
        for row in np.flatnonzero(np.isin(batches["last_offset"], self._last_offsets)).tolist():
            last = job.last_offsets.get(int(batches["producer_id"][row]))
            stays[row] |= last == batches["last_offset"][row]
        rules = np.zeros(batches.size, np.int64)
        for row, is_control, is_void in _transactional_rows(piece, tracker):
            discards = is_void
            if is_control:
                stays[row] |= self._is_last_marker(piece, row)
                horizon = int(batches["base_timestamp"][row])
                is_marked = int(batches["attributes"][row]) & DELETE_HORIZON_MASK
                discards = is_void and bool(is_marked) and horizon <= job.now_ms
                rules[row] |= retain.EMPTY_TRANSACTION if is_void else 0
            if discards:
                rules[row] |= retain.DISCARD_RECORDS if stays[row] else retain.DELETE_BATCH
        rules[stays] |= retain.RETAIN_EMPTY
        return rules

    def _is_last_marker(self, piece: Piece, row: int) -> bool:
        """Whether nothing but a marker of this epoch is known of the producer."""
        epoch = self._job.last_epochs.get(int(piece.batches["producer_id"][row]))
        if epoch is None:
            return False
        at = int(piece.batches["start"][row]) + PRODUCER_EPOCH_POSITION
        return bool(_EPOCH.unpack_from(piece.data, at)[0] == epoch)

    def _moved(self, count: int, *, read: bool) -> None:
        if read:
            self.bytes_read += count
        else:
            self.bytes_written += count
        self._throttle.moved(count)
        self._may_go_on()


def _transactional_rows(piece: Piece, tracker: TransactionTracker) -> list[tuple[int, bool, bool]]:
    """Of batches that have to do with transactions: the row, whether it is a control batch, and whether it is
    void, that is, an aborted batch or a marker that has nothing to say any more.
    """
    batches = piece.batches
    attributes = batches["attributes"]
    rows = np.flatnonzero(attributes & (TRANSACTIONAL_MASK | CONTROL_MASK)).tolist()
    if not rows:
        return []
    types = np.empty(batches.size, np.int64)
    index_entries.control_types(piece.octets, batches, types)
    found: list[tuple[int, bool, bool]] = []
    for row in rows:
        producer_id, last_offset = int(batches["producer_id"][row]), int(batches["last_offset"][row])
        if int(attributes[row]) & CONTROL_MASK:
            found.append((row, True, tracker.saw_control(producer_id, last_offset, int(types[row]))))
        else:
            found.append((row, False, tracker.saw_data(producer_id, last_offset)))
    return found
