"""Filters of a batch query on topic, partition, offset and timestamp, as bounds of what has to be read.

Bounds only ever leave out records that the filters would: Spark still applies every filter to the rows.
The last record before a timestamp cannot be looked up, because timestamps may go back within a partition, so
an upper bound on the timestamp leaves nothing out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from mainstem.protocol.resources import TopicPartition


@dataclass(frozen=True)
class Bounds:
    """What records must fulfil to be read; None bounds nothing. `offset_end` is exclusive."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offset_start: int | None = None
    offset_end: int | None = None
    timestamp_ms: int | None = None

    def admits(self, partition: TopicPartition) -> bool:
        return (self.topics is None or partition[0] in self.topics) and (
            self.partitions is None or partition[1] in self.partitions
        )


def bounds_of(filters: Iterable[Filter]) -> Bounds:
    """All filters together; those that say nothing about where to read are passed over."""
    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    starts: list[int] = []
    ends: list[int] = []
    timestamps: list[int] = []
    for each in filters:
        column = ".".join(getattr(each, "attribute", ()))
        equal = _equal(each)
        if column == "topic" and equal is not None:
            topics = frozenset(equal) if topics is None else topics & frozenset(equal)
        elif column == "partition" and equal is not None:
            partitions = frozenset(equal) if partitions is None else partitions & frozenset(equal)
        elif column == "offset":
            start, end = _interval(each, equal)
            starts += start
            ends += end
        elif column == "timestamp":
            timestamps += _least_ms(each, equal)
    return Bounds(
        topics,
        partitions,
        max(starts, default=None),
        min(ends, default=None),
        max(timestamps, default=None),
    )


def _equal(each: Filter) -> list[Any] | None:
    if isinstance(each, EqualTo | EqualNullSafe):
        return [each.value]
    if isinstance(each, In):
        return [value for value in each.value if value is not None]
    return None


def _interval(each: Filter, equal: list[Any] | None) -> tuple[list[int], list[int]]:
    """The least offset and the one behind the greatest, as far as the filter knows them."""
    if equal is not None:
        whole = [value for value in equal if isinstance(value, int)]
        return ([min(whole)], [max(whole) + 1]) if whole else ([], [])
    value = getattr(each, "value", None)
    if not isinstance(value, int):
        return [], []
    if isinstance(each, GreaterThan):
        return [value + 1], []
    if isinstance(each, GreaterThanOrEqual):
        return [value], []
    if isinstance(each, LessThan):
        return [], [value]
    if isinstance(each, LessThanOrEqual):
        return [], [value + 1]
    return [], []


def _least_ms(each: Filter, equal: list[Any] | None) -> list[int]:
    """The least timestamp of a record that can pass, rounded down to the millisecond."""
    if equal is None and not isinstance(each, GreaterThan | GreaterThanOrEqual):
        return []
    values = equal if equal is not None else [getattr(each, "value", None)]
    times = [value for value in values if isinstance(value, datetime)]
    if not times or len(times) < len(values):
        return []
    least = min(time if time.tzinfo else time.astimezone(UTC) for time in times)
    return [max(0, math.floor(least.timestamp() * 1000))]
