"""From Arrow columns to final record batches for each partition, without a Python object for any row.

The batches carry no producer: `records.batch.stamp_producer` writes that, when it is known who sends them.
"""

import time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mainstem.records.batch import (
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    set_crc,
)
from mainstem.records.columnar import build
from mainstem.records.columnar.layout import PLAN, Bytes, Int32s, Int64s
from mainstem.records.compression import CODEC_BY_CONFIG_NAME, Codec, compress

BATCH_SIZE_MAX = 2**31 - 1

# More numbers than this between the lowest and the highest partition are not counted one by one.
_PARTITION_SPAN_MAX = 1 << 20


class _Column(NamedTuple):
    """A binary column taken apart: the bytes of row i begin at offsets[i]; a null's length is -1."""

    data: Bytes
    offsets: Int32s
    lengths: Int32s


class _Headers(NamedTuple):
    """All headers of all rows in one, and where each row's end; no ends if there are no headers at all."""

    ends: Int64s
    names: _Column
    values: _Column


_NO_COLUMN = _Column(np.empty(0, np.uint8), np.empty(0, np.int32), np.empty(0, np.int32))
_NO_HEADERS = _Headers(np.empty(0, np.int64), _NO_COLUMN, _NO_COLUMN)


def encode(
    keys: pa.Array | pa.ChunkedArray | None,
    values: pa.Array | pa.ChunkedArray | None,
    headers: pa.Array | pa.ChunkedArray | None,
    timestamps_ms: pa.Array | pa.ChunkedArray | Int64s | None,
    partitions: Int32s,
    *,
    codec: str = "none",
    batch_bytes: int = 1_000_000,
) -> dict[int, list[bytearray]]:
    """The batches of each partition, its rows in their order, none larger than `batch_bytes` before it is
    compressed unless one record is.

    Keys and values are binary or text and may be null; so may be timestamps, which then are now, and headers,
    each of which is a list of (key, value). A column that is None is null everywhere.
    """
    partitions = np.ascontiguousarray(partitions, np.int32)
    rows = partitions.size
    if rows == 0:
        return {}
    columns = _column(keys, rows), _column(values, rows)
    stamps = _timestamps(timestamps_ms, rows)
    heads = _headers(headers, rows)
    lowest, ends, order = _grouped(partitions)
    sizes = np.empty(heads.ends.size, np.int64)
    build.header_sizes(heads.ends, heads.names.lengths, heads.values.lengths, sizes)
    bodies, plans = np.empty(rows, np.int64), np.empty(rows, PLAN)
    count = build.plan_batches(
        order, ends, lowest, columns[0].lengths, columns[1].lengths, stamps, sizes, batch_bytes, bodies, plans
    )
    plans = plans[:count]
    if plans["size"].max() > BATCH_SIZE_MAX:
        raise ValueError(f"a record needs {plans['size'].max()} bytes, a batch can have {BATCH_SIZE_MAX}")
    sources = (order, bodies, stamps, *columns[0], *columns[1], heads.ends, *heads.names, *heads.values)
    return _batches(plans.tolist(), sources, CODEC_BY_CONFIG_NAME[codec])


def _batches(plans: list[Any], sources: tuple[Any, ...], codec: Codec) -> dict[int, list[bytearray]]:
    batches: dict[int, list[bytearray]] = {}
    for partition, first, stop, size, base_timestamp, max_timestamp in plans:
        batch = bytearray(size)
        octets = np.frombuffer(batch, np.uint8)[HEADER_SIZE:]
        build.write_records(octets, first, stop, *sources)
        if codec is not Codec.NONE:
            payload = compress(codec, octets.data)
            batch = bytearray(HEADER_SIZE + len(payload))
            batch[HEADER_SIZE:] = payload
        HEADER.pack_into(
            batch, 0, 0, len(batch) - LOG_OVERHEAD, NO_LEADER_EPOCH, MAGIC, 0, codec, stop - first - 1,
            base_timestamp, max_timestamp, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE, stop - first,
        )  # fmt: skip
        set_crc(batch)
        batches.setdefault(partition, []).append(batch)
    return batches


def _grouped(partitions: Int32s) -> tuple[int, Int64s, Int64s]:
    """The lowest partition, where each partition's rows end, and the rows in the order of partitions."""
    lowest, highest = int(partitions.min()), int(partitions.max())
    if lowest < 0 or highest - lowest > _PARTITION_SPAN_MAX:
        raise ValueError(f"partitions from {lowest} to {highest} are not those of a topic")
    ends, order = np.zeros(highest - lowest + 1, np.int64), np.empty(partitions.size, np.int64)
    build.group_rows(partitions, lowest, ends, order)
    return lowest, ends, order


def _timestamps(timestamps_ms: pa.Array | pa.ChunkedArray | Int64s | None, rows: int) -> Int64s:
    now_ms = time.time_ns() // 1_000_000
    if timestamps_ms is None:
        return np.full(rows, now_ms, np.int64)
    if isinstance(timestamps_ms, (pa.Array, pa.ChunkedArray)):
        import pyarrow.compute as pc  # not at import: it takes a fifth of a second, and few need it

        timestamps_ms = pc.fill_null(timestamps_ms.cast(pa.int64()), now_ms).to_numpy()
    stamps = np.ascontiguousarray(timestamps_ms, np.int64)
    _check_rows("timestamps", stamps.size, rows)
    return stamps


def _check_rows(name: str, given: int, rows: int) -> None:
    if given != rows:
        raise ValueError(f"there are {given} {name} for {rows} partitions")


def _column(array: pa.Array | pa.ChunkedArray | None, rows: int) -> _Column:
    if array is None:
        return _Column(np.empty(0, np.uint8), np.zeros(rows, np.int32), np.full(rows, -1, np.int32))
    _check_rows("values", len(array), rows)
    return take_apart(array)


def take_apart(array: pa.Array | pa.ChunkedArray) -> _Column:
    """The buffers of a binary or text column, whatever slice of them it is."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if array.type == pa.string():
        array = array.view(pa.binary())
    elif array.type != pa.binary():
        array = array.cast(pa.binary())
    _, offset_buffer, data_buffer = array.buffers()
    if offset_buffer is None or len(array) == 0:
        offsets = np.zeros(len(array) + 1, np.int32)
    else:
        offsets = np.frombuffer(offset_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    data = np.empty(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    lengths = offsets[1:] - offsets[:-1]
    if array.null_count:
        lengths[~_validity(array)] = -1
    return _Column(data, offsets, lengths)


def _validity(array: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each row has a value, from Arrow's bits."""
    bits = np.unpackbits(np.frombuffer(array.buffers()[0], np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].astype(np.bool_)


def _headers(headers: pa.Array | pa.ChunkedArray | None, rows: int) -> _Headers:
    if headers is None:
        return _NO_HEADERS
    _check_rows("headers", len(headers), rows)
    if isinstance(headers, pa.ChunkedArray):
        headers = headers.combine_chunks()
    items = headers.flatten()
    if len(items) == 0:
        return _NO_HEADERS
    names, values = items.flatten()
    if names.null_count:
        raise ValueError("a header has no key")
    import pyarrow.compute as pc

    counts = pc.fill_null(pc.list_value_length(headers), 0).to_numpy()
    return _Headers(np.cumsum(counts, dtype=np.int64), take_apart(names), take_apart(values))
