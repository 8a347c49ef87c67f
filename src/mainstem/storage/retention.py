"""Which segments a log may forget: by age, by size, and below the log start offset. The log removes them."""

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from mainstem.logs import about
from mainstem.storage.segments.segment import Segment

if TYPE_CHECKING:
    from mainstem.storage.log import Log

logger = logging.getLogger(__name__)

# Clocks of producers differ; a record stamped further ahead than this keeps its segment for long.
_FUTURE_MS = 3_600_000


Predicate = Callable[[Segment, int | None], bool]


def reasons(log: "Log", now_ms: int) -> Iterator[tuple[str, Predicate]]:
    """Why segments may go, one after the other: each is worked out when those of the one before are gone."""
    yield "the log start offset", _below_log_start(log)
    if log.config.delete:
        yield "retention.bytes", _beyond_size(log)
        yield "retention.ms", _beyond_age(log, now_ms)


def _below_log_start(log: "Log") -> Predicate:
    return lambda _, next_base: next_base is not None and next_base <= log.log_start_offset


def _beyond_size(log: "Log") -> Predicate:
    excess = log.size - log.config.retention_bytes

    def predicate(segment: Segment, _: int | None) -> bool:
        nonlocal excess
        if log.config.retention_bytes < 0 or excess < segment.size:
            return False
        excess -= segment.size
        return True

    return predicate


def _beyond_age(log: "Log", now_ms: int) -> Predicate:
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


def removable_count(log: "Log", high_watermark: int, predicate: Predicate) -> int:
    """How many of the oldest segments may go: as long as the predicate holds and all of one is committed."""
    segments = log.segments
    count = 0
    for number, segment in enumerate(segments):
        next_base = segments.bases[number + 1] if number + 1 < len(segments) else None
        end_offset = log.log_end_offset if next_base is None else next_base
        is_empty_tail = next_base is None and segment.size == 0
        if end_offset > high_watermark or is_empty_tail or not predicate(segment, next_base):
            break
        count += 1
    return count
