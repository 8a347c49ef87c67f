"""Rows into record batches: gathered from Arrow batches, placed on partitions and encoded in compiled code.

This runs in the tasks only: importing it loads numba and pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from mainstem.protocol.resources import TopicPartition
from mainstem.records.columnar import encode
from mainstem.spark.sink.columns import Columns, rows_by_topic
from mainstem.spark.sink.errors import RecordTooLargeError
from mainstem.spark.sink.options import SinkOptions
from mainstem.spark.sink.partitioning import PlacedTopics
from mainstem.spark.sink.topics import WritableTopic

# Gathered before encoding. Spark hands over 10,000 rows at a time, which over many partitions would be small
# batches.
GATHERED_BYTES = 8 * 1024 * 1024

Batches = dict[TopicPartition, list[bytearray]]


def gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows in tables of a bounded size."""
    some: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            some.append(batch)
            size += batch.nbytes
        if size >= GATHERED_BYTES:
            yield pa.Table.from_batches(some)
            some, size = [], 0
    if some:
        yield pa.Table.from_batches(some)


class Encoder:
    """The record batches of one task's rows."""

    def __init__(
        self, options: SinkOptions, columns: Columns, find_topic: Callable[[str], WritableTopic]
    ) -> None:
        self._options = options
        self._columns = columns
        self._topics = PlacedTopics(options, find_topic)

    def encode(self, table: pa.Table) -> Batches:
        found: Batches = {}
        for topic, rows in rows_by_topic(table, self._columns, self._options.topic):
            known = self._topics[topic]
            places = known.partitioner.place(rows)
            encoded = encode(
                rows.key,
                rows.value,
                rows.headers,
                None,
                places,
                codec=self._options.codec,
                batch_bytes=known.batch_bytes,
            )
            for partition, batches in encoded.items():
                self._check_sizes(topic, batches)
                found[topic, partition] = batches
        return found

    def _check_sizes(self, topic: str, batches: list[bytearray]) -> None:
        for batch in batches:
            if len(batch) > self._options.record_bytes_max:
                raise RecordTooLargeError(topic, len(batch), self._options.record_bytes_max)
