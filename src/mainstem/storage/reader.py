"""Finding what a reader asked for: by offset as a range of a file, by timestamp as an offset.

A fetch never reads the batches it returns; it reads at most a few headers near the border of an index entry.
Where a reader will go on is remembered, so that reading from the start to the end costs no search at all.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import BatchHeader
from mainstem.records.record import Record, RecordError, iter_records
from mainstem.storage.files.file_range import FileHandle, FileRange
from mainstem.storage.results import ReadResult
from mainstem.storage.segments.scan import CorruptSegmentError, batch_at, iter_batch_headers
from mainstem.storage.segments.segment import Segment

if TYPE_CHECKING:
    from mainstem.storage.log import Log

T = TypeVar("T")


EMPTY = ReadResult(None, 0)


def read(
    log: "Log", offset: int, max_bytes: int, max_offset: int | None, min_one_message: bool
) -> ReadResult:
    """See `Log.read`."""
    end_offset = log.log_end_offset
    if offset > end_offset or offset < log.log_start_offset:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} of {log.name} is not between {log.log_start_offset} and {end_offset}",
        )
    if log.health.failure is not None:
        log.health.check()
    if max_offset is None or max_offset > end_offset:
        max_offset = end_offset
    if offset >= max_offset:
        return EMPTY
    try:
        return _read(log, offset, max_bytes, max_offset, min_one_message)
    except OSError as error:
        raise log.health.refuse(error, f"cannot read {log.name}") from error
    except CorruptSegmentError as error:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"cannot read offset {offset} of {log.name}: {error}"
        ) from error


def _read(log: "Log", offset: int, max_bytes: int, max_offset: int, min_one_message: bool) -> ReadResult:
    parts = log.segments
    segments, bases = parts.in_order, parts.bases
    number = len(bases) - 1 if offset >= bases[-1] else max(0, bisect_right(bases, offset) - 1)
    while True:
        segment = segments[number]
        position = segment.position_of(offset)
        if position is not None:
            break
        number += 1  # the rest of this segment was compacted away
        if number == len(segments):
            return EMPTY
    following = bases[number + 1] if number + 1 < len(bases) else log.log_end_offset
    if max_offset >= following:
        end, next_offset = segment.size, following
    else:
        found = segment.position_of(max_offset)
        end, next_offset = (segment.size if found is None else found), max_offset
    if end <= position:
        return EMPTY
    if end - position > max_bytes:
        end, next_offset = segment.boundary_before(position, position + max(max_bytes, 0))
        if end == position:
            if not min_one_message:
                return EMPTY
            end, next_offset = _first_batch_end(segment, position)
    segment.remember(next_offset, end)
    length = end - position
    return ReadResult(FileRange(segment.file(), position, length), length, next_offset)


def _first_batch_end(segment: Segment, position: int) -> tuple[int, int]:
    _, header = next(iter_batch_headers(segment.file(), position, segment.size))
    return position + header.size, header.next_offset


# ---- by timestamp


def offset_for_timestamp(log: "Log", timestamp: int) -> tuple[int, int, int] | None:
    """See `Log.offset_for_timestamp`."""
    return _guarded(log, lambda: _offset_for_timestamp(log, timestamp))


def max_timestamp_offset(log: "Log") -> tuple[int, int, int] | None:
    """See `Log.max_timestamp_offset`."""
    return _guarded(log, lambda: _max_timestamp_offset(log))


def _guarded(log: "Log", search: Callable[[], T]) -> T:
    log.health.check()
    try:
        return search()
    except OSError as error:
        raise log.health.refuse(error, f"cannot read {log.name}") from error
    except CorruptSegmentError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"cannot search {log.name}: {error}") from error


def _offset_for_timestamp(log: "Log", timestamp: int) -> tuple[int, int, int] | None:
    start_offset = log.log_start_offset
    for segment in log.segments:
        if segment.max_timestamp < timestamp:
            continue
        entry = segment.time_index.floor(timestamp)
        relative = max(entry[1] if entry else 0, start_offset - segment.base_offset)
        index_entry = segment.offset_index.floor(relative)
        file = segment.file()
        for position, header in iter_batch_headers(file, index_entry[1] if index_entry else 0, segment.size):
            if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
                record = _first_record(
                    file, position, header, lambda r: r.timestamp >= timestamp and r.offset >= start_offset
                )
                if record is not None:
                    return record.timestamp, record.offset, header.partition_leader_epoch
    return None


def _max_timestamp_offset(log: "Log") -> tuple[int, int, int] | None:
    segment = max(log.segments, key=lambda candidate: candidate.max_timestamp)
    timestamp = segment.max_timestamp
    if timestamp < 0:
        return None
    entry = segment.offset_index.floor(segment.max_timestamp_offset - segment.base_offset)
    file = segment.file()
    for position, header in iter_batch_headers(file, entry[1] if entry else 0, segment.size):
        if header.max_timestamp == timestamp:
            record = _first_record(file, position, header, lambda r: r.timestamp == timestamp)
            if record is not None:
                return timestamp, record.offset, header.partition_leader_epoch
    return None


def _first_record(
    file: FileHandle, position: int, header: BatchHeader, wanted: Callable[[Record], bool]
) -> Record | None:
    """The first record of a batch that is wanted; the batch's first offset if its records cannot be read."""
    try:
        for record in iter_records(batch_at(file, position, header)):
            if wanted(record):
                return record
    except RecordError:
        return Record(header.base_offset, header.max_timestamp, None, None)
    return None
