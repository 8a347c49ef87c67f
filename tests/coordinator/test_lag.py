"""How far a group is behind, in every position that a committed offset can have relative to the log."""

import pytest

from mainstem.coordinator.group.lag import UNKNOWN, Lag, first_unread, partition_lag, total

NOW_MS = 1_000_000


@pytest.mark.parametrize(
    ("committed", "log_start", "log_end", "offset", "records", "lost"),
    [
        (4, 0, 10, 4, 6, 0),
        (0, 0, 10, 0, 10, 0),
        (10, 0, 10, None, 0, 0),
        # Retention has deleted offsets 2 to 6 before they were read: Kafka counts them in.
        (2, 7, 10, 7, 8, 5),
        # All of them.
        (2, 10, 10, None, 8, 8),
        # The log was cut, or the topic deleted and made again: Kafka shows the negative figure.
        (15, 0, 10, None, -5, 0),
        (0, 0, 0, None, 0, 0),
    ],
)
def test_records(
    committed: int, log_start: int, log_end: int, offset: int | None, records: int, lost: int
) -> None:
    assert first_unread(committed, log_start, log_end) == offset
    age = 0.0 if offset is None else 2.5
    assert partition_lag(committed, log_start, log_end, NOW_MS - 2500, NOW_MS) == Lag(records, lost, age)


@pytest.mark.parametrize("committed", [None, -1])
def test_nothing_committed(committed: int | None) -> None:
    assert first_unread(committed, 3, 10) is None
    assert partition_lag(committed, 3, 10, None, NOW_MS) == UNKNOWN == Lag(None, 0, None)


@pytest.mark.parametrize("timestamp", [None, -1])
def test_a_record_without_a_timestamp(timestamp: int | None) -> None:
    assert partition_lag(4, 0, 10, timestamp, NOW_MS) == Lag(6, 0, None)


def test_a_record_from_the_future() -> None:
    assert partition_lag(4, 0, 10, NOW_MS + 1, NOW_MS) == Lag(6, 0, 0.0)


def test_in_sum() -> None:
    assert total([]) == UNKNOWN
    assert total([UNKNOWN, UNKNOWN]) == UNKNOWN
    assert total([Lag(3, 0, 1.5), UNKNOWN, Lag(4, 2, 9.0), Lag(0, 0, 0.0)]) == Lag(7, 2, 9.0)
    assert total([Lag(3, 0, None), Lag(0, 0, 0.0)]) == Lag(3, 0, None)
    assert total([Lag(3, 0, None), Lag(1, 0, 4.0)]) == Lag(4, 0, 4.0)
    assert total([Lag(0, 0, 0.0)]) == Lag(0, 0, 0.0)
