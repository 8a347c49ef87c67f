"""Bringing a partition's folder into order after a stop that was not clean.

What is past the recovery point is read and checked, a damaged tail is cut off, indexes and leader epochs are
written again. It works on files alone and its report can be pickled: a large log may be recovered in a
process of its own, and the report then given to `Log.open` as `recovered`.
"""

import logging

from msgspec import Struct

from mainstem.logs import about
from mainstem.records.batch import (
    ATTRIBUTES_POSITION,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_PRODUCER_ID,
    BatchHeader,
)
from mainstem.records.control import read_marker
from mainstem.records.crc import crc32c
from mainstem.storage.files.deletion import remove_path
from mainstem.storage.files.file_range import FileHandle, HandleCache
from mainstem.storage.files.files import Files
from mainstem.storage.leader_epoch_cache import LeaderEpochCache
from mainstem.storage.producers.producer_state import (
    ProducerState,
    snapshot_offsets,
    snapshot_path,
    write_snapshot,
)
from mainstem.storage.producers.replay import producer_state_at, rebuild_producer_state, replay
from mainstem.storage.producers.transaction_index import (
    TXN_INDEX_SUFFIX,
    AbortedTransaction,
    index_is_sane,
    write_entries,
)
from mainstem.storage.segments.index_builder import IndexBuilder
from mainstem.storage.segments.scan import CorruptSegmentError, batch_at
from mainstem.storage.segments.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    RELATIVE_OFFSET_MAX,
    TIME_INDEX_SUFFIX,
    Segment,
)

logger = logging.getLogger(__name__)

_CHUNK_BYTES = 1024 * 1024
_SEGMENT_NAME_LENGTH = 20 + len(LOG_SUFFIX)


class RecoveryReport(Struct):
    """What a recovery found: the end of the log, and who produced into it."""

    log_end_offset: int
    producer_state: ProducerState


def list_segments(
    directory: str, cache: HandleCache, now_ms: int, names: set[str] | None = None
) -> list[Segment]:
    """The segments of a folder, by their files, ascending. All file names are added to `names`."""
    segments = []
    for name in cache.files.listdir(directory):
        if names is not None:
            names.add(name)
        if name.endswith(LOG_SUFFIX) and len(name) == _SEGMENT_NAME_LENGTH and name[:20].isdigit():
            size = cache.files.stat(f"{directory}/{name}").st_size
            segments.append(Segment(directory, int(name[:20]), size, now_ms, cache))
    segments.sort(key=lambda segment: segment.base_offset)
    return segments


def recover_log(
    files: Files,
    directory: str,
    recovery_point: int,
    index_interval_bytes: int,
    now_ms: int,
    *,
    whole_from: int | None = None,
) -> RecoveryReport:
    """Check everything past the recovery point and repair it. There must be a segment. From `whole_from` on
    nothing was ever compacted (None: it may have been anywhere), so that each segment begins where the one
    before it ended: if it does not, that one was never synced, and has lost its end.
    """
    segments = list_segments(directory, HandleCache(files, 8), now_ms)
    first = 0
    while first + 1 < len(segments) and segments[first + 1].base_offset <= recovery_point:
        first += 1
    _repair_indexes(files, directory, segments[:first], index_interval_bytes)
    recovery = _Recovery(files, directory, segments, first, index_interval_bytes)
    return recovery.run(recovery_point, whole_from)


def _repair_indexes(files: Files, directory: str, segments: list[Segment], index_interval_bytes: int) -> None:
    """Make those indexes again that cannot be believed; the segments themselves are."""
    state: ProducerState | None = None
    for number, segment in enumerate(segments):
        if segment.indexes_are_sane() and index_is_sane(files, directory, segment.base_offset):
            state = None
            continue
        logger.warning(
            "rebuilding the indexes of %s",
            segment.path(LOG_SUFFIX),
            extra=about(folder=directory, offset=segment.base_offset),
        )
        segment.rebuild_indexes(index_interval_bytes)
        if state is None:  # else it comes from the segment before
            state = producer_state_at(files, directory, segments[: number + 1], segment.base_offset)
        write_entries(files, segment.path(TXN_INDEX_SUFFIX), replay(state, segment))


class _Recovery:
    """The scan of the segments from `first` on."""

    def __init__(
        self, files: Files, directory: str, segments: list[Segment], first: int, index_interval_bytes: int
    ) -> None:
        self._files = files
        self._directory = directory
        self._segments = segments
        self._first = first
        self._index_interval_bytes = index_interval_bytes
        self._recovery_point = 0
        self._whole_from: int | None = None
        self._epochs = LeaderEpochCache(files, directory)
        self._report = RecoveryReport(segments[0].base_offset, ProducerState())

    def run(self, recovery_point: int, whole_from: int | None) -> RecoveryReport:
        self._recovery_point, self._whole_from = recovery_point, whole_from
        segments, report = self._segments, self._report
        start = segments[self._first].base_offset
        report.log_end_offset = start
        epochs = list(self._epochs.entries)
        self._epochs.truncate_from_end(start)
        self._remove_snapshots_after(start)
        report.producer_state = rebuild_producer_state(
            self._files, self._directory, segments[: self._first + 1], start
        )
        for number in range(self._first, len(segments)):
            cause = self._does_not_follow(segments[number])
            if cause is not None:
                self._remove_segments(segments[number:], cause)
                del segments[number:]
                break
            if number:
                # As when it was rolled. When retention takes the segments before it, nothing else knows who
                # had a transaction open.
                write_snapshot(
                    self._files, self._directory, segments[number].base_offset, report.producer_state
                )
            if not self._scan(segments[number]):
                self._remove_segments(segments[number + 1 :], "the segment before it is damaged")
                del segments[number + 1 :]
                break
        if self._epochs.entries != epochs:
            self._epochs.write()
        for segment in segments:
            segment.close()
        return report

    def _does_not_follow(self, segment: Segment) -> str | None:
        """Why a segment is not what comes after the ones before it."""
        gap = segment.base_offset - self._report.log_end_offset
        if gap < 0:
            return "the segment before it, which had been cut, is back in its full length"
        is_whole = self._whole_from is not None and self._report.log_end_offset >= self._whole_from
        # So wide a gap comes from the leader: there the segment had to begin with its first batch.
        if 0 < gap <= RELATIVE_OFFSET_MAX and is_whole and self._may_be_lost():
            return "the end of the segment before it is lost"
        return None

    def _may_be_lost(self) -> bool:
        """Whether what comes next was perhaps never synced: then what is there may be of different times."""
        return self._report.log_end_offset >= self._recovery_point

    def _scan(self, segment: Segment) -> bool:
        """Check one segment; False when it was damaged and is now shorter."""
        self._report.log_end_offset = max(self._report.log_end_offset, segment.base_offset)
        builder = IndexBuilder(segment.base_offset, self._index_interval_bytes)
        aborted: list[AbortedTransaction] = []
        damage = None
        try:
            self._scan_batches(segment, builder, aborted)
        except CorruptSegmentError as error:
            damage = error
            self._cut(segment, error)
        segment.install_indexes(builder)
        write_entries(self._files, segment.path(TXN_INDEX_SUFFIX), aborted)
        return damage is None

    def _scan_batches(
        self, segment: Segment, builder: IndexBuilder, aborted: list[AbortedTransaction]
    ) -> None:
        report, file, end = self._report, segment.file(), segment.size
        position = 0
        while position < end:
            header = _read_batch(file, position, end)
            if header.base_offset < report.log_end_offset:
                raise CorruptSegmentError(
                    position, f"offset {header.base_offset} comes after offset {report.log_end_offset - 1}"
                )
            if 0 <= header.partition_leader_epoch < self._epochs.latest_epoch and self._may_be_lost():
                raise CorruptSegmentError(
                    position,
                    f"leader epoch {header.partition_leader_epoch} comes after {self._epochs.latest_epoch}",
                )
            if header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX or header.last_offset_delta < 0:
                raise CorruptSegmentError(position, f"offset {header.last_offset} does not belong here")
            builder.add(position, header.size, header.last_offset, header.max_timestamp)
            if header.partition_leader_epoch > self._epochs.latest_epoch:
                self._epochs.assign(header.partition_leader_epoch, header.base_offset)
            if header.producer_id != NO_PRODUCER_ID:
                marker = read_marker(batch_at(file, position, header)) if header.is_control else None
                ended = report.producer_state.record(header, marker)
                if ended is not None:
                    aborted.append(ended)
            report.log_end_offset = header.next_offset
            position += header.size

    def _cut(self, segment: Segment, error: CorruptSegmentError) -> None:
        lost = segment.size - error.position
        logger.warning(
            "cutting %d bytes off %s at position %d: %s; the log now ends at offset %d",
            lost, segment.path(LOG_SUFFIX), error.position, error.reason, self._report.log_end_offset,
            extra=about(folder=self._directory, offset=self._report.log_end_offset, cause=error.reason),
        )  # fmt: skip
        handle = segment.file()
        self._files.ftruncate(handle.fd, error.position)
        self._files.fsync(handle.fd)
        segment.size = error.position

    def _remove_segments(self, segments: list[Segment], cause: str) -> None:
        """What follows a damaged batch cannot be kept: offsets must not have holes of unknown content."""
        for segment in reversed(segments):
            logger.warning(
                "removing %s with %d bytes: %s",
                segment.path(LOG_SUFFIX), segment.size, cause,
                extra=about(folder=self._directory, offset=segment.base_offset, cause=cause),
            )  # fmt: skip
            segment.close()
            for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, LOG_SUFFIX):
                remove_path(self._files, segment.path(suffix))

    def _remove_snapshots_after(self, offset: int) -> None:
        for snapshot in snapshot_offsets(self._files.listdir(self._directory)):
            if snapshot > offset:
                remove_path(self._files, snapshot_path(self._directory, snapshot))


def _read_batch(file: FileHandle, position: int, end: int) -> BatchHeader:
    """The header of the batch at `position`, its length and CRC checked."""
    chunk = file.files.pread(file.fd, min(_CHUNK_BYTES, end - position), position)
    if len(chunk) < HEADER_SIZE:
        raise CorruptSegmentError(position, "a batch header is cut off")
    header = BatchHeader._make(HEADER.unpack_from(chunk))
    if header.batch_length == 0 and header.base_offset == 0 and not any(chunk[:HEADER_SIZE]):
        raise CorruptSegmentError(position, "zeros instead of a batch (preallocated or never written)")
    if header.batch_length < HEADER_SIZE - LOG_OVERHEAD:
        raise CorruptSegmentError(position, f"a batch has the impossible length {header.batch_length}")
    if position + header.size > end:
        raise CorruptSegmentError(position, f"a batch of {header.size} bytes is cut off")
    if header.magic != MAGIC:
        raise CorruptSegmentError(position, f"a batch has the unknown format {header.magic}")
    crc = crc32c(memoryview(chunk)[ATTRIBUTES_POSITION : header.size])
    at = position + len(chunk)
    while at < position + header.size:
        chunk = file.files.pread(file.fd, min(_CHUNK_BYTES, position + header.size - at), at)
        if not chunk:
            raise CorruptSegmentError(position, "a batch is cut off")
        crc = crc32c(chunk, crc)
        at += len(chunk)
    if crc != header.crc:
        raise CorruptSegmentError(position, "a batch has a wrong checksum")
    return header
