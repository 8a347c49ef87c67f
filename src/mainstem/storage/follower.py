"""Appending what a leader sent: the same batches under the same offsets.

All batches are checked before the first is written. A batch that is cut off at the end, as fetch responses
may have it, is left for the next fetch.
"""

from typing import TYPE_CHECKING

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import MAGIC, NO_PRODUCER_ID, BatchHeader, crc_is_valid, iter_headers
from mainstem.storage.results import AppendResult
from mainstem.storage.rolling import segment_for
from mainstem.storage.writer import write_all

if TYPE_CHECKING:
    from mainstem.storage.log import Log

Placed = tuple[int, BatchHeader]


class UnexpectedOffsetError(ValueError):
    """The leader's batch does not continue this log."""


def append(log: "Log", data: memoryview, now_ms: int) -> AppendResult:
    """See `Log.append_as_follower`."""
    log.health.check()
    batches = list(iter_headers(data))
    first_offset = log.log_end_offset
    _check(log, data, batches)
    group: list[Placed] = []
    for position, header in batches:
        if group and not _fits(log, position + header.size - group[0][0], header):
            _write_group(log, data, group)
            group = []
        if not group:
            segment_for(
                log, header.size, header.base_offset, header.last_offset, header.max_timestamp, now_ms
            )
        group.append((position, header))
    if group:
        _write_group(log, data, group)
    return AppendResult(
        batches[0][1].base_offset if batches else first_offset,
        log.log_end_offset - 1,
        -1,
        max((header.max_timestamp for _, header in batches), default=-1),
        log.log_start_offset,
        False,
        log.flush_demanded(now_ms),
    )


def _check(log: "Log", data: memoryview, batches: list[Placed]) -> None:
    expected = log.log_end_offset
    for position, header in batches:
        if header.magic != MAGIC or not crc_is_valid(data, position):
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"batch at offset {header.base_offset} for {log.name} is damaged",
            )
        if header.base_offset < expected or header.last_offset_delta < 0:
            raise UnexpectedOffsetError(
                f"batch {header.base_offset}..{header.last_offset} for {log.name} came where "
                f"offset {expected} or later was expected"
            )
        expected = header.next_offset


def _fits(log: "Log", group_bytes: int, header: BatchHeader) -> bool:
    """Whether the batch can go into the active segment together with those that wait before it."""
    segment = log.active_segment
    return (
        segment.size + group_bytes <= log.config.segment_bytes
        and header.max_timestamp <= segment.roll_timestamp
        and header.last_offset <= segment.max_offset
    )


def _write_group(log: "Log", data: memoryview, group: list[Placed]) -> None:
    """One write for batches of one segment, then the bookkeeping for each."""
    for _, header in group:
        if header.partition_leader_epoch > log.leader_epochs.latest_epoch or log.leader_epochs.dirty:
            log.begin_epoch(header.partition_leader_epoch, header.base_offset)
    segment = log.active_segment
    start = group[0][0]
    end = group[-1][0] + group[-1][1].size
    file_start = segment.size
    write_all(log, segment, data[start:end], end - start)
    for position, header in group:
        segment.size += header.size
        log.log_end_offset = header.next_offset
        try:
            segment.saw_batch(
                file_start + position - start,
                header.size,
                header.last_offset,
                header.max_timestamp,
                log.config.index_interval_bytes,
                log.config.segment_index_bytes,
            )
        except OSError as error:
            log.index_failed(error)
        if header.producer_id != NO_PRODUCER_ID:
            log.record_producer(data[position : position + header.size])
