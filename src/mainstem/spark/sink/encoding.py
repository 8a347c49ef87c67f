"""Rows into record batches: gathered from Arrow batches, placed on partitions and encoded in compiled code.

This runs in the tasks only: importing it loads numba and pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from mainstem.records.columnar import encode
from mainstem.spark.sink.columns import Columns, rows_by_topic
from mainstem.spark.sink.errors import SinkError
from mainstem.spark.sink.options import SinkOptions
from mainstem.spark.sink.partitioning import Partitioner
from mainstem.spark.sink.topics import WritableTopic
from mainstem.wire import TopicPartition

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


class _Topic(NamedTuple):
    partitioner: Partitioner
    batch_bytes: int


class Encoder:
    """The record batches of one task's rows."""

    def __init__(
        self, options: SinkOptions, columns: Columns, find_topic: Callable[[str], WritableTopic]
    ) -> None:
        self._find_topic = find_topic
        self._options = options
        self._columns = columns
        self._topics: dict[str, _Topic] = {}

    def encode(self, table: pa.Table) -> Batches:
        found: Batches = {}
        for topic, rows in rows_by_topic(table, self._columns, self._options.topic):
            known = self._topics.get(topic) or self._learn(topic)
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

    def _learn(self, topic: str) -> _Topic:
        found = self._find_topic(topic)
        batch_bytes = min(self._options.batch_bytes, found.batch_bytes_max or self._options.batch_bytes)
        partitioner = Partitioner(
            topic,
            found.partitions,
            found.led,
            batch_bytes=batch_bytes,
            ignore_keys=self._options.ignore_keys,
        )
        self._topics[topic] = known = _Topic(partitioner, batch_bytes)
        return known

    def _check_sizes(self, topic: str, batches: list[bytearray]) -> None:
        for batch in batches:
            if len(batch) > self._options.record_bytes_max:
                raise SinkError(
                    f"a record for the topic {topic} is {len(batch)} bytes when serialized which is larger "
                    f"than {self._options.record_bytes_max}, which is the value of kafka.max.request.size: "
                    "raise that option and the topic's max.message.bytes, or write smaller records"
                )
