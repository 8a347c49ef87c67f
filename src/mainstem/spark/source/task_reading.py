"""What a Spark task does: read the ranges that it was given and hand on Arrow batches, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from mainstem.spark.source.client import open_client
from mainstem.spark.source.errors import ReadError
from mainstem.spark.source.options import ReadOptions
from mainstem.spark.source.planning import Task, rounds
from mainstem.spark.worker_process import begin_task
from mainstem.wire import WireError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class TaskPartition(InputPartition):
    """What travels from the driver to one task."""

    ranges: Task


def read_task(options: ReadOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The rows of a task."""
    from mainstem.spark.source.columns import Batches

    # Spark makes a partition of its own for a plan without any.
    if not isinstance(partition, TaskPartition):
        return
    begin_task()
    batches = Batches(options.rows_per_batch)
    try:
        with open_client(options) as client:
            for ranges in rounds(partition.ranges):
                for topic_partition, decoded in client.read(ranges):
                    yield from batches.of(topic_partition, decoded)
    except WireError as error:
        raise ReadError(str(error)) from None
