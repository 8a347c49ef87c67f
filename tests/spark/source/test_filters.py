"""Filters narrow what is read, and never leave out a record that they would let through."""

from datetime import UTC, datetime, timedelta, timezone

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from mainstem.spark.source.filters import Bounds, bounds_of

NOON = datetime(2026, 1, 1, 12, 0, 0, 1500, UTC)
NOON_MS = 1767268800001


def bounds(*filters: Filter) -> Bounds:
    return bounds_of(filters)


def test_topics_and_partitions_are_cut_down() -> None:
    both = bounds(EqualTo(("topic",), "a"), In(("partition",), (1, 2, None)), In(("partition",), (2, 3)))
    assert both == Bounds(topics=frozenset({"a"}), partitions=frozenset({2}))
    assert both.admits(("a", 2))
    assert not both.admits(("a", 1))
    assert not both.admits(("b", 2))


def test_offsets_have_a_start_and_an_end() -> None:
    assert bounds(GreaterThan(("offset",), 5), LessThanOrEqual(("offset",), 9)) == Bounds(
        offset_start=6, offset_end=10
    )
    assert bounds(GreaterThanOrEqual(("offset",), 5), LessThan(("offset",), 9)) == Bounds(
        offset_start=5, offset_end=9
    )
    assert bounds(EqualTo(("offset",), 7), In(("offset",), (3, 8))) == Bounds(offset_start=7, offset_end=8)


def test_a_timestamp_has_a_start_only() -> None:
    assert bounds(GreaterThanOrEqual(("timestamp",), NOON)) == Bounds(timestamp_ms=NOON_MS)
    elsewhere = NOON.astimezone(timezone(timedelta(hours=5)))
    assert bounds(GreaterThan(("timestamp",), elsewhere)) == Bounds(timestamp_ms=NOON_MS)
    assert bounds(LessThan(("timestamp",), NOON)) == Bounds()


def test_other_filters_narrow_nothing() -> None:
    assert bounds(IsNotNull(("offset",)), Not(EqualTo(("topic",), "a"))) == Bounds()
    assert bounds(EqualTo(("key",), b"x"), EqualTo(("headers", "offset"), 1)) == Bounds()
