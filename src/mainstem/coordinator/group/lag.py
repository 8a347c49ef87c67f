"""How far a group is behind: in records, and in the age of the oldest record that it has not read.

The one place where lag is computed, from offsets that the caller has looked up, so that the command and the
metrics say the same. In records it is what Kafka's ConsumerGroupCommand shows: the end of the log minus the
committed offset, also where retention has already deleted some of the records in between.
"""

from collections.abc import Iterable
from typing import NamedTuple


class Lag(NamedTuple):
    """How far behind one partition, or several taken together, are. None where nothing says it."""

    # Records from the committed offset to the end of the log. Negative where the log ends before that offset.
    records: int | None
    # Those among them that were deleted before they were read.
    lost: int
    # The age of the oldest unread record; 0.0 where all is read.
    seconds: float | None


UNKNOWN = Lag(None, 0, None)


def first_unread(committed: int | None, log_start: int, log_end: int) -> int | None:
    """The offset of the oldest unread record, whose timestamp `partition_lag` wants; None without one."""
    if committed is None or committed < 0:
        return None
    offset = max(committed, log_start)
    return offset if offset < log_end else None


def partition_lag(
    committed: int | None, log_start: int, log_end: int, first_unread_ms: int | None, now_ms: int
) -> Lag:
    """The lag of one partition. A committed offset of None or -1 is none at all.

    `first_unread_ms` is the timestamp of the record at `first_unread`, None or -1 where it is not known.
    """
    if committed is None or committed < 0:
        return UNKNOWN
    lost = min(max(0, log_start - committed), max(0, log_end - committed))
    if first_unread(committed, log_start, log_end) is None:
        seconds: float | None = 0.0
    elif first_unread_ms is None or first_unread_ms < 0:
        seconds = None
    else:
        # Producers set timestamps, and their clocks may be ahead of this one.
        seconds = max(0, now_ms - first_unread_ms) / 1000
    return Lag(log_end - committed, lost, seconds)


def total(lags: Iterable[Lag]) -> Lag:
    """Several partitions together: their records in sum, the age of the oldest. Unknown ones add nothing."""
    known = [lag for lag in lags if lag.records is not None]
    if not known:
        return UNKNOWN
    ages = [lag.seconds for lag in known if lag.seconds is not None]
    oldest: float | None = max(ages, default=None)
    if not oldest and len(ages) < len(known):
        # Something is unread, and nothing says since when.
        oldest = None
    return Lag(sum(lag.records or 0 for lag in known), sum(lag.lost for lag in known), oldest)
