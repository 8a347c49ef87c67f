"""The stream reader that Spark calls: where to start, how far each micro-batch goes, and its tasks.

It lives in a process of its own beside the driver for as long as the query runs. A copy of it travels to the
tasks, so connections are made when they are needed and never travel.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from mainstem.spark.source.admission import BatchDelay, rate_limit
from mainstem.spark.source.batch_planning import plan_tasks
from mainstem.spark.source.errors import OffsetsError
from mainstem.spark.source.offset_lookup import OffsetLookup
from mainstem.spark.source.options import ReadOptions
from mainstem.spark.source.partitions import OFFSETS_EXAMPLE, Offsets, OffsetsJson, from_json, to_json
from mainstem.spark.source.planning import Task
from mainstem.spark.source.stream_planning import stream_ranges
from mainstem.spark.source.task_reading import TaskPartition, read_task

if TYPE_CHECKING:
    import pyarrow as pa


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One for each run of a query."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._lookup = OffsetLookup(options)
        self._initial: OffsetsJson | None = None
        self._latest: Offsets | None = None
        self._is_available_now = False
        self._target: Offsets | None = None
        self._planned: tuple[OffsetsJson, OffsetsJson, list[Task]] | None = None
        self._delay = (
            BatchDelay(options.min_offsets_per_trigger, options.max_trigger_delay_ms)
            if options.min_offsets_per_trigger
            else None
        )

    def initialOffset(self) -> OffsetsJson:
        # Spark asks when it looks for an end and again when it plans: in between, "latest" would move on.
        if self._initial is None:
            partitions = self._lookup.assigned()
            self._initial = to_json(self._lookup.resolve(self._options.starting, partitions, starting=True))
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        """Spark hands one limit back, so the lower one is decided in `latestOffset`."""
        if self._options.max_offsets_per_trigger:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._is_available_now = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> OffsetsJson:
        first = _from_checkpoint(start)
        self._latest = self._reachable(first)
        if isinstance(limit, ReadAllAvailable):
            return to_json(self._latest)
        # A last batch that waited for more would never come: nothing is added to what is available now.
        if self._delay and not self._is_available_now:
            now_ms = time.monotonic() * 1000
            if self._delay.holds_back(now_ms, first, self._latest):
                return start
        if isinstance(limit, ReadMaxRows):
            return to_json(self._limited(limit.max_rows, first, self._latest))
        return to_json(self._latest)

    def reportLatestOffset(self) -> OffsetsJson | None:
        return to_json(self._latest) if self._latest else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        # Spark may ask twice for one micro-batch, and has to get the same answer.
        if self._planned is None or self._planned[:2] != (start, end):
            self._planned = (start, end, self._tasks(_from_checkpoint(start), _from_checkpoint(end)))
        return [TaskPartition(task) for task in self._planned[2]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(self._options, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """The offsets are in the query's checkpoint."""

    def stop(self) -> None:
        self._lookup.close()

    def _reachable(self, start: Offsets) -> Offsets:
        """The latest offsets; under availableNow those of the query's beginning."""
        if self._target is not None:
            return self._target
        assigned = self._lookup.assigned(may_be_gone=self._may_be_gone(start))
        latest = self._lookup.latest_not_before(assigned, start)
        if self._is_available_now:
            self._target = latest
        return latest

    def _may_be_gone(self, known: Offsets) -> set[str]:
        """Topics that were there once: that they are not any more is data loss, and no wrong name."""
        if known and not self._options.fail_on_data_loss:
            return set(self._options.subscription.topics) | {
                t for t, _ in self._options.subscription.partitions
            }
        return {topic for topic, _ in known}

    def _limited(self, most: int, start: Offsets, latest: Offsets) -> Offsets:
        added = self._lookup.earliest(latest.keys() - start.keys())
        return rate_limit(most, {**added, **start}, latest)

    def _tasks(self, start: Offsets, end: Offsets) -> list[Task]:
        added = end.keys() - start.keys()
        there = self._lookup.assigned(may_be_gone=self._may_be_gone({**start, **end})) if added else set()
        ranges = stream_ranges(
            start,
            end,
            self._lookup.earliest(added & there),
            fail_on_data_loss=self._options.fail_on_data_loss,
        )
        return plan_tasks(self._options, ranges)


class RefusingStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says what is wrong when it is asked for offsets. PySpark replaces an error from where it makes its
    reader by one of its own; an error of a reader that is there is told as it is.
    """

    def __init__(self, error: Exception) -> None:
        self._error = error

    def initialOffset(self) -> OffsetsJson:
        raise self._error

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> OffsetsJson:
        raise self._error

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise self._error

    def prepareForTriggerAvailableNow(self) -> None:
        """The next question is for offsets."""


def _from_checkpoint(offsets: Mapping[str, Any]) -> Offsets:
    try:
        return from_json(offsets)
    except (ValueError, AttributeError):
        raise OffsetsError(
            f"the checkpoint holds {offsets!r}, which are not offsets such as {OFFSETS_EXAMPLE}: it is "
            "damaged, or of another source; start the query with another checkpointLocation"
        ) from None
