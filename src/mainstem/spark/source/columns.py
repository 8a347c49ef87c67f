"""Decoded records as the Arrow batches that Spark takes: its schema, its types, and sizes that stay small."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from mainstem.records.columnar import Decoded
from mainstem.spark.source.errors import ReadError
from mainstem.spark.source.partitions import TopicPartition

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

# Spark keeps a batch in memory on both sides of the pipe.
BATCH_BYTES = 4 * 1024 * 1024
BATCH_ROWS = 65_536


def record_batches(
    partition: TopicPartition, decoded: Decoded, rows_per_batch: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The records in batches of at most so many rows, or else of a few megabytes."""
    rows = len(decoded.offset)
    if not rows:
        return
    columns = [
        decoded.key,
        decoded.value,
        pa.repeat(pa.scalar(partition[0], pa.string()), rows),
        pa.repeat(pa.scalar(partition[1], pa.int32()), rows),
        decoded.offset,
        _microseconds(partition, decoded),
        decoded.timestamp_type,
    ]
    schema = SCHEMA
    if decoded.headers is not None:
        columns.append(decoded.headers)
        schema = SCHEMA_WITH_HEADERS
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    step = rows_per_batch or _rows_per_batch(decoded, rows)
    for start in range(0, rows, step):
        yield batch.slice(start, step)


def _rows_per_batch(decoded: Decoded, rows: int) -> int:
    size = decoded.key.nbytes + decoded.value.nbytes
    return max(1, min(BATCH_ROWS, rows * BATCH_BYTES // max(int(size), 1)))


def _microseconds(partition: TopicPartition, decoded: Decoded) -> pa.TimestampArray:
    try:
        return decoded.timestamp_ms.cast(pa.timestamp("ms", tz="UTC")).cast(TIMESTAMP)
    except pa.ArrowInvalid:
        offset, timestamp = next(
            (offset, timestamp)
            for offset, timestamp in zip(
                decoded.offset.to_pylist(), decoded.timestamp_ms.to_pylist(), strict=True
            )
            if abs(timestamp) > (2**63 - 1) // 1000
        )
        raise ReadError(
            f"the record at offset {offset} of {partition[0]}-{partition[1]} has the timestamp {timestamp}, "
            "too large for Spark: record timestamps are milliseconds since 1970, and its producer seems to "
            "write microseconds or nanoseconds"
        ) from None
