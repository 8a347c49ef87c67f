"""Which segments a log may forget: by age, by size, and below the log start offset.

Files are only renamed here; the deletion queue removes them later.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from mainstem.logs import about
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.storage.segments.segment import Segment
from mainstem.storage.truncation import remove_segment

if TYPE_CHECKING:
    from mainstem.storage.log import Log

logger = logging.getLogger(__name__)

# Clocks of producers differ; a record stamped further ahead than this keeps its segment for long.
_FUTURE_MS = 3_600_000


def advance_log_start_offset(log: "Log", offset: int, high_watermark: int) -> bool:
    """See `Log.advance_log_start_offset`."""
    if offset > high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"cannot move the start of {log.name} to {offset}, beyond the high watermark {high_watermark}",
        )
    log.health.check()
    if offset <= log.log_start_offset:
        return False
    log.log_start_offset = offset
    log.leader_epochs.truncate_from_start(offset)
    try:
        log.leader_epochs.write()
    except OSError as error:
        raise log.health.refuse(error, f"cannot write {log.leader_epochs.path}") from error
    return True


def delete_old_segments(log: "Log", now_ms: int, high_watermark: int) -> int:
    """See `Log.delete_old_segments`."""
    if log.health.failure is not None:
        return 0
    try:
        deleted = _delete_while(log, now_ms, high_watermark, _below_log_start(log), "the log start offset")
        if log.config.delete:
            deleted += _delete_while(log, now_ms, high_watermark, _beyond_size(log), "retention.bytes")
            deleted += _delete_while(log, now_ms, high_watermark, _beyond_age(log, now_ms), "retention.ms")
    except OSError as error:
        raise log.health.refuse(error, f"cannot delete segments of {log.name}") from error
    return deleted


_Predicate = Callable[[Segment, int | None], bool]


def _below_log_start(log: "Log") -> _Predicate:
    return lambda _, next_base: next_base is not None and next_base <= log.log_start_offset


def _beyond_size(log: "Log") -> _Predicate:
    excess = log.size - log.config.retention_bytes

    def predicate(segment: Segment, _: int | None) -> bool:
        nonlocal excess
        if log.config.retention_bytes < 0 or excess < segment.size:
            return False
        excess -= segment.size
        return True

    return predicate


def _beyond_age(log: "Log", now_ms: int) -> _Predicate:
    retention_ms = log.config.retention_ms

    def predicate(segment: Segment, _: int | None) -> bool:
        if retention_ms < 0:
            return False
        timestamp = segment.largest_timestamp()
        if segment.max_timestamp > now_ms + _FUTURE_MS:
            logger.warning(
                "%s keeps its segment %d although retention.ms may be over: a record in it is stamped %d ms "
                "ahead of the clock",
                log.name, segment.base_offset, timestamp - now_ms,
                extra=about(log, offset=segment.base_offset),
            )  # fmt: skip
        return now_ms - timestamp > retention_ms

    return predicate


def _delete_while(log: "Log", now_ms: int, high_watermark: int, predicate: _Predicate, reason: str) -> int:
    """Delete from the oldest on, as long as the predicate holds and all of the segment is committed."""
    count = 0
    for number, segment in enumerate(log.segments):
        next_base = log.bases[number + 1] if number + 1 < len(log.bases) else None
        end_offset = log.log_end_offset if next_base is None else next_base
        is_empty_tail = next_base is None and segment.size == 0
        if end_offset > high_watermark or is_empty_tail or not predicate(segment, next_base):
            break
        count += 1
    if count == 0:
        return 0
    if count == len(log.segments):
        # An empty segment at the end keeps the next offset, so that none is ever used twice.
        log.roll(now_ms)
    logger.info(
        "deleting %d segments of %s up to offset %d because of %s",
        count,
        log.name,
        log.bases[count],
        reason,
        extra=about(log, offset=log.bases[count], cause=reason),
    )
    for _ in range(count):
        remove_segment(log, 0, now_ms)
    if log.bases[0] > log.log_start_offset:
        log.log_start_offset = log.bases[0]
        log.leader_epochs.truncate_from_start(log.log_start_offset)
        log.leader_epochs.write()
    return count
