"""The batch readers that Spark calls: one that plans everything the options ask for, and one that also takes
filters, in a class of its own because Spark refuses a reader with `pushFilters` unless push-down is enabled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from mainstem.spark.source.batch_planning import batch_ranges, plan_tasks
from mainstem.spark.source.filters import Bounds, bounds_of
from mainstem.spark.source.offset_lookup import OffsetLookup
from mainstem.spark.source.options import ReadOptions
from mainstem.spark.source.task_reading import TaskPartition, read_task

if TYPE_CHECKING:
    import pyarrow as pa


class BatchReader(DataSourceReader):
    """Plans on the driver, reads in tasks."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._bounds = Bounds()

    def partitions(self) -> Sequence[InputPartition]:
        lookup = OffsetLookup(self._options)
        try:
            ranges = batch_ranges(self._options, lookup, self._bounds)
        finally:
            lookup.close()
        return [TaskPartition(task) for task in plan_tasks(self._options, ranges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(self._options, partition)


class FilteringBatchReader(BatchReader):
    """Reads only offsets that filters can let through."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._bounds = bounds_of(filters)
        # Spark applies them all to what is read.
        return filters
