"""Which log is cleaned next, and how much of it: Kafka's rules, without a look at any record.

A log is clean up to its first dirty offset and may be cleaned up to its first uncleanable one. Only whole
segments count.
"""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from mainstem.config.definition import INT64_MAX
from mainstem.logs import about

if TYPE_CHECKING:
    from mainstem.storage.log import Log

logger = logging.getLogger(__name__)


class Candidate(Struct, frozen=True):
    """A log with something in it that could be cleaned. `is_due`: `max.compaction.lag.ms` demands it."""

    log: "Log"
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    is_due: bool

    @property
    def ratio(self) -> float:
        """The share of the bytes that were never cleaned."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_worth_cleaning(self) -> bool:
        if self.cleanable_bytes == 0:
            return False
        return self.is_due or self.ratio > self.log.config.min_cleanable_dirty_ratio


def dirtiest_last(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those that are worth it, by their share of dirty bytes."""
    worth_it = [candidate for candidate in candidates if candidate.is_worth_cleaning]
    return sorted(worth_it, key=lambda candidate: candidate.ratio)


def first_dirty_offset(log: "Log", checkpoint: int | None) -> int:
    """Where the part begins that was never cleaned: the checkpoint, as far as it can be believed."""
    if checkpoint is None:
        return log.log_start_offset
    if checkpoint < log.log_start_offset:
        if not log.config.delete:
            logger.warning(
                "%s was clean up to %d, which is before its start; it counts as dirty from %d on",
                log.name, checkpoint, log.log_start_offset,
                extra=about(log, offset=checkpoint),
            )  # fmt: skip
        return log.log_start_offset
    if checkpoint > log.log_end_offset:
        logger.warning(
            "%s was clean up to %d, but ends at %d; all of it counts as dirty",
            log.name, checkpoint, log.log_end_offset,
            extra=about(log, offset=checkpoint),
        )  # fmt: skip
        return log.log_start_offset
    return checkpoint


def examine(log: "Log", checkpoint: int | None, high_watermark: int, now_ms: int) -> Candidate:
    """What there is to clean in a log."""
    dirty, segments = first_dirty_offset(log, checkpoint), log.segments
    active_base = segments.active.base_offset
    uncleanable = min(log.last_stable_offset(high_watermark), active_base)
    lag_ms = log.config.min_compaction_lag_ms
    first_number = segments.number_of(dirty)
    if lag_ms > 0:
        for segment in segments.in_order[first_number:-1]:
            if segment.largest_timestamp() > now_ms - lag_ms:
                uncleanable = min(uncleanable, segment.base_offset)
                break
    uncleanable = max(dirty, uncleanable)
    # Whole segments only: up to where the one begins that holds this offset.
    last_number = len(segments.bases) - 1 if uncleanable >= active_base else segments.number_of(uncleanable)
    uncleanable = segments.bases[last_number]
    clean = 0 if dirty <= segments.bases[0] else segments.number_of(dirty - 1) + 1
    return Candidate(
        log,
        dirty,
        uncleanable,
        sum(segment.size for segment in segments.in_order[:clean]),
        sum(segment.size for segment in segments.in_order[first_number:last_number]),
        _is_due(log, first_number, now_ms),
    )


def _is_due(log: "Log", first_number: int, now_ms: int) -> bool:
    """Whether something dirty is older than `max.compaction.lag.ms`, as the first batches of segments say."""
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms >= INT64_MAX:
        return False
    stamps = [segment.first_timestamp() for segment in log.segments.in_order[first_number:-1]]
    return any(0 < stamp < now_ms - lag_ms for stamp in stamps)
