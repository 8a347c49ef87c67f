"""The plan of a batch query: its limits become offsets once, on the driver, and the offsets become tasks."""

from __future__ import annotations

import logging
import os

from mainstem.protocol.resources import TopicPartition
from mainstem.spark.source.errors import DataLossError, OffsetsError
from mainstem.spark.source.filters import Bounds
from mainstem.spark.source.offset_lookup import OffsetLookup
from mainstem.spark.source.options import ReadOptions
from mainstem.spark.source.partitions import Offsets, names
from mainstem.spark.source.planning import OffsetRange, Task, plan

logger = logging.getLogger(__name__)


def plan_tasks(options: ReadOptions, ranges: list[OffsetRange]) -> list[Task]:
    """Ranges as tasks. How many run at once is not known here; this machine's processors are the guess."""
    return plan(
        ranges,
        min_partitions=options.min_partitions,
        max_records=options.max_records_per_partition,
        max_tasks=options.max_tasks,
        parallelism=os.cpu_count() or 1,
    )


def batch_ranges(options: ReadOptions, lookup: OffsetLookup, bounds: Bounds) -> list[OffsetRange]:
    """What a batch query reads."""
    partitions = lookup.assigned()
    start = lookup.wanted(options.starting, partitions, starting=True)
    end = lookup.wanted(options.ending, partitions, starting=False)
    chosen = {partition for partition in partitions if bounds.admits(partition)}
    earliest, latest = lookup.earliest(chosen), lookup.latest(chosen)
    ranges = [
        _range(partition, start[partition], end[partition], earliest[partition], latest[partition], options)
        for partition in sorted(chosen)
    ]
    return _narrow(ranges, bounds, _young_enough(lookup, ranges, bounds))


def _range(
    partition: TopicPartition, start: int, end: int, earliest: int, latest: int, options: ReadOptions
) -> OffsetRange:
    given = start
    start = start if start >= 0 else latest if start == -1 else earliest
    end = latest if end < 0 else end
    name = names([partition])
    if start > end:
        raise OffsetsError(
            f"the starting offset {start} of {name} is greater than its ending offset {end}: the start is "
            "behind the end of the log, or the topic was deleted and made again"
        )
    problem = None
    if start < end and given >= 0 and start < earliest:
        problem = f"{name} begins at offset {earliest}, behind the starting offset {start}."
    elif end > latest:
        problem = f"{name} ends at offset {latest}, before the ending offset {end}."
    if problem and options.fail_on_data_loss:
        raise DataLossError(problem)
    if problem:
        logger.warning("%s Reading what is there.", problem)
    return OffsetRange(*partition, max(start, earliest), min(end, latest))


def _young_enough(lookup: OffsetLookup, ranges: list[OffsetRange], bounds: Bounds) -> Offsets:
    if bounds.timestamp_ms is None:
        return {}
    found = lookup.at({part.topic_partition: bounds.timestamp_ms for part in ranges if part.size > 0})
    ends = {part.topic_partition: part.end for part in ranges}
    return {partition: ends[partition] if offset < 0 else offset for partition, offset in found.items()}


def _narrow(ranges: list[OffsetRange], bounds: Bounds, young: Offsets) -> list[OffsetRange]:
    narrowed = []
    for part in ranges:
        start = max(part.start, bounds.offset_start or 0, young.get(part.topic_partition, 0))
        end = part.end if bounds.offset_end is None else min(part.end, bounds.offset_end)
        narrowed.append(OffsetRange(part.topic, part.partition, start, end))
    return narrowed
