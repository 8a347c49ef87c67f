"""From offset ranges to Spark tasks. The same offsets always give the same plan.

Dividing follows Spark's own connector (`minPartitions`, `maxRecordsPerPartition`). Then, unlike there, small
ranges share a task: to start Python for one costs about 25 ms, in which a task reads some 100,000 records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mainstem.protocol.resources import TopicPartition

# A task that reads this many records is worth its start.
WORTHWHILE_RECORDS = 500_000


@dataclass(frozen=True, order=True)
class OffsetRange:
    """The offsets [start, end) of one partition. Compaction and transactions leave fewer records in it."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def topic_partition(self) -> TopicPartition:
        return self.topic, self.partition


Task = tuple[OffsetRange, ...]


def plan(
    ranges: Iterable[OffsetRange],
    *,
    min_partitions: int | None = None,
    max_records: int | None = None,
    max_tasks: int | None = None,
    parallelism: int,
) -> list[Task]:
    """The tasks of a batch; ranges that are empty, or backwards, have none."""
    divided = divide(ranges, min_partitions, max_records)
    if max_records is not None:
        return [(part,) for part in divided]
    total = sum(part.size for part in divided)
    wanted = max(min_partitions or 1, parallelism, total // WORTHWHILE_RECORDS)
    return group(divided, max_tasks or wanted)


def divide(
    ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """Large ranges in parts, until none has more than `max_records` and there are about `min_partitions`."""
    divided = sorted(part for part in ranges if part.size > 0)
    if max_records is not None:
        divided = [piece for part in divided for piece in _pieces(part, math.ceil(part.size / max_records))]
    if min_partitions is None or len(divided) >= min_partitions:
        return divided
    total = sum(part.size for part in divided)
    # Ranges that stay whole take no part in how the others are divided.
    whole = {part for part in divided if _share(part.size, total, min_partitions) == 1}
    rest = total - sum(part.size for part in whole)
    wanted = max(min_partitions - len(whole), 1)
    return [
        piece
        for part in divided
        for piece in _pieces(part, 1 if part in whole else _share(part.size, rest, wanted))
    ]


def _share(size: int, total: int, parts: int) -> int:
    return max(math.floor(size / total * parts + 0.5), 1)


def _pieces(part: OffsetRange, count: int) -> list[OffsetRange]:
    """Of equal size but for one record; none is empty."""
    bounds = [part.start + part.size * number // count for number in range(count + 1)]
    return [replace(part, start=start, end=end) for start, end in pairwise(bounds) if end > start]


def group(ranges: Sequence[OffsetRange], count: int) -> list[Task]:
    """At most `count` tasks of about the same size: the largest ranges first, each to the smallest task."""
    if len(ranges) <= count:
        return [(part,) for part in ranges]
    loads = [0] * count
    tasks: list[list[OffsetRange]] = [[] for _ in range(count)]
    for part in sorted(ranges, key=lambda part: (-part.size, part)):
        smallest = loads.index(min(loads))
        loads[smallest] += part.size
        tasks[smallest].append(part)
    return [merge(task) for task in tasks]


def merge(ranges: Iterable[OffsetRange]) -> Task:
    """In order, with adjoining ranges of a partition as one."""
    merged: list[OffsetRange] = []
    for part in sorted(ranges):
        last = merged[-1] if merged else None
        if last and last.topic_partition == part.topic_partition and last.end == part.start:
            merged[-1] = replace(last, end=part.end)
        else:
            merged.append(part)
    return tuple(merged)


def rounds(task: Task) -> list[Task]:
    """A task's ranges in rounds that hold each partition once."""
    left, result = list(task), []
    while left:
        seen: dict[TopicPartition, OffsetRange] = {}
        for part in left:
            seen.setdefault(part.topic_partition, part)
        result.append(tuple(seen.values()))
        left = [part for part in left if seen[part.topic_partition] is not part]
    return result
