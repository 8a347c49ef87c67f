"""Decoded records as the Arrow batches that Spark takes: its schema, its types, and sizes that stay small."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from mainstem.protocol.resources import TopicPartition
from mainstem.records.columnar import Decoded
from mainstem.spark.source.errors import ReadError

TIMESTAMP = pa.timestamp("us", tz="UTC")
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP),
        pa.field("timestampType", pa.int32()),
    ]
)
SCHEMA_WITH_HEADERS = SCHEMA.append(pa.field("headers", HEADERS))

# Spark keeps a batch in memory on both sides of the pipe; Java's side has memory of up to 4 MB ready for the
# next one, rounded up to a power of two.
BATCH_BYTES = 4 * 1024 * 1024
BATCH_ROWS = 65_536
# What a row takes beside key, value and topic.
_ROW_BYTES = 36
# Spark's timestamps are microseconds in 64 bits.
_TIMESTAMP_MS_MAX = (2**63 - 1) // 1000


class Batches:
    """Makes the batches of one task; what is the same in all rows of a partition is made once."""

    def __init__(self, rows_per_batch: int | None = None) -> None:
        self._rows_per_batch = rows_per_batch
        self._same: dict[TopicPartition, tuple[pa.StringArray, pa.Int32Array]] = {}

    def of(self, partition: TopicPartition, decoded: Decoded) -> Iterator[pa.RecordBatch]:
        """The records in batches of at most so many rows, or else of a few megabytes."""
        rows = len(decoded.offset)
        if not rows:
            return
        columns = [
            decoded.key,
            decoded.value,
            *self._names(partition, rows),
            decoded.offset,
            _microseconds(partition, decoded),
            decoded.timestamp_type,
        ]
        schema = SCHEMA
        if decoded.headers is not None:
            columns.append(decoded.headers)
            schema = SCHEMA_WITH_HEADERS
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        step = self._rows_per_batch or _rows_per_batch(partition, decoded, rows)
        for start in range(0, rows, step):
            yield batch.slice(start, step)

    def _names(self, partition: TopicPartition, rows: int) -> tuple[pa.StringArray, pa.Int32Array]:
        topics, numbers = self._same.get(partition, (None, None))
        if topics is None or numbers is None or len(topics) < rows:
            topics = pa.repeat(pa.scalar(partition[0], pa.string()), rows)
            numbers = pa.repeat(pa.scalar(partition[1], pa.int32()), rows)
            self._same[partition] = topics, numbers
        return topics.slice(0, rows), numbers.slice(0, rows)


def _rows_per_batch(partition: TopicPartition, decoded: Decoded, rows: int) -> int:
    size = decoded.key.nbytes + decoded.value.nbytes + rows * (len(partition[0]) + _ROW_BYTES)
    if size <= BATCH_BYTES:
        return rows
    return max(1, min(BATCH_ROWS, rows * BATCH_BYTES // int(size)))


def _microseconds(partition: TopicPartition, decoded: Decoded) -> pa.TimestampArray:
    # Not by Arrow's cast: to load its functions takes a new worker a fifth of a second.
    timestamps = decoded.timestamp_ms.to_numpy()
    if timestamps.max() > _TIMESTAMP_MS_MAX or timestamps.min() < -_TIMESTAMP_MS_MAX:
        row = int(np.argmax((timestamps > _TIMESTAMP_MS_MAX) | (timestamps < -_TIMESTAMP_MS_MAX)))
        raise ReadError(
            f"the record at offset {decoded.offset[row]} of {partition[0]}-{partition[1]} has the timestamp "
            f"{timestamps[row]}, too large for Spark: record timestamps are milliseconds since 1970, and its "
            "producer seems to write microseconds or nanoseconds"
        )
    return pa.Array.from_buffers(TIMESTAMP, len(timestamps), [None, pa.py_buffer(timestamps * 1000)], 0)
