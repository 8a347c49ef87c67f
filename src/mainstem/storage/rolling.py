"""When a log begins a new segment, and how.

The append only compares three numbers; this is what it falls back on when one of them says that it is time,
or that nobody has worked the numbers out yet.
"""

from typing import TYPE_CHECKING

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.storage.producers.producer_state import write_snapshot
from mainstem.storage.segments.segment import RELATIVE_OFFSET_MAX, Segment

if TYPE_CHECKING:
    from mainstem.storage.log import Log


def segment_for(
    log: "Log", size: int, first_offset: int, last_offset: int, max_timestamp: int, now_ms: int
) -> Segment:
    """The segment that takes this batch: the active one, or a new one if that is full or old."""
    config = log.config
    if size > config.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"batch of {size} bytes for {log.name} is larger than a segment "
            f"(segment.bytes={config.segment_bytes})",
        )
    segment = log.active_segment
    try:
        is_full = segment.size > 0 and (
            segment.size + size > config.segment_bytes
            or last_offset > segment.max_offset
            or _is_old(log, segment, max_timestamp, now_ms)
        )
        if is_full or last_offset > segment.base_offset + RELATIVE_OFFSET_MAX:
            segment = roll(log, now_ms, first_offset)
        if segment.size == 0:
            segment.rolling_timestamp = max_timestamp
        _decide_roll(log, segment)
    except OSError as error:
        raise log.health.refuse(error, f"cannot roll {log.name}") from error
    return segment


def _is_old(log: "Log", segment: Segment, max_timestamp: int, now_ms: int) -> bool:
    """By the timestamps of its first batch and the new one; by the clock when batches have none."""
    first = segment.first_timestamp()
    waited_ms = max_timestamp - first if first >= 0 else now_ms - segment.created_ms
    return waited_ms > log.config.max_segment_ms - segment.jitter_ms


def _decide_roll(log: "Log", segment: Segment) -> None:
    """Work out once what the append then only compares with."""
    segment.load_max_timestamp()
    first = segment.first_timestamp()
    if first >= 0:
        segment.roll_timestamp = first + log.config.max_segment_ms - segment.jitter_ms


def roll(log: "Log", now_ms: int, base_offset: int) -> Segment:
    """Begin a new segment at `base_offset`, at or after the end of the log."""
    old = log.active_segment
    if old.base_offset == base_offset and old.size == 0:
        return old
    assert base_offset > old.base_offset, f"{log.name} would roll from {old} to {base_offset}"
    old.seal()
    write_snapshot(log.directory, base_offset, log.producer_state)
    new = new_segment(log, base_offset, now_ms)
    log.segments.append(new)
    log.bases.append(base_offset)
    log.active_segment = new
    log.rolled_bytes += old.size
    return new


def new_segment(log: "Log", base_offset: int, now_ms: int) -> Segment:
    """A segment file that is not part of the log yet."""
    config, environment = log.config, log.environment
    preallocate_bytes = config.segment_bytes if config.preallocate else 0
    segment = Segment.create(log.directory, base_offset, now_ms, environment.handles, preallocate_bytes)
    segment.jitter_ms = environment.segment_jitter_ms(config.segment_jitter_ms, config.max_segment_ms)
    return segment
