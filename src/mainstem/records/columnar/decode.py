"""From the records of a fetch answer to Arrow columns, without a Python object for any record.

Python goes over batches (checksums, decompression, transactions), kernels over records. What is returned
covers every offset from the start up to `next_offset`, neither more nor less.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from mainstem.records.batch import COMPRESSION_MASK, CONTROL_MASK, HEADER_SIZE, Buffer
from mainstem.records.columnar import walk
from mainstem.records.columnar.aborted import aborted_batches
from mainstem.records.columnar.batches import check_counts, check_crcs, find_batches, plain_records
from mainstem.records.columnar.errors import OK, REASONS, CorruptRecordsError
from mainstem.records.columnar.layout import Bytes, Int32s, Int64s, Table

# Arrow's offsets have 32 bits, and compressed batches can become many times what was fetched: past this many
# bytes the rest is left for another call. A single batch is always taken, and is less than 2 GiB.
UNPACKED_SIZE_MAX = 128 * 1024 * 1024

HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))


@dataclass(frozen=True)
class Decoded:
    """The columns of the records, all of one length, and the offset to fetch next."""

    key: pa.BinaryArray
    value: pa.BinaryArray
    offset: pa.Int64Array
    timestamp_ms: pa.Int64Array
    timestamp_type: pa.Int32Array
    headers: pa.ListArray | None
    next_offset: int
    # How many bytes at the beginning of the data are of no further use.
    consumed: int = 0


def decode(
    data: Buffer,
    start_offset: int,
    end_offset: int,
    *,
    headers: bool = False,
    aborted: Sequence[tuple[int, int]] | None = (),
    size_max: int = UNPACKED_SIZE_MAX,
) -> Decoded:
    """The records with `start_offset <= offset < end_offset` of one partition's part of a Fetch answer.

    `data` may end within a batch, which is then ignored: no complete batch at all shows in a `next_offset`
    that is still `start_offset`. Of more data than `size_max` only a part is taken at once, but one batch at
    least; the rest comes by calling again from `next_offset` on with the same data, or, where nothing is
    aborted, with the data behind what was `consumed`. `aborted` holds the (producer id, first offset) of the
    answer; None reads uncommitted records too. CorruptRecordsError names the batch that is not what it
    should be.
    """
    view = memoryview(data).cast("B")
    octets = np.frombuffer(view, np.uint8)
    batches, saw_end = find_batches(octets, end_offset)
    if not aborted:
        # Without transactions to follow, what will not fit is not looked at.
        sizes = (batches["stop"] - batches["start"]) * (batches["last_offset"] >= start_offset)
        fitting = _fitting(np.cumsum(sizes), size_max)
        if fitting < batches.size:
            batches, saw_end = batches[:fitting], False
    check_crcs(view, batches)
    attributes = batches["attributes"]
    batches["wanted"][(attributes & CONTROL_MASK) != 0] = 0
    if aborted:
        batches["wanted"][aborted_batches(view, batches, aborted)] = 0
    batches["wanted"][batches["last_offset"] < start_offset] = 0
    octets, kept = _unpack(view, octets, batches, size_max)
    if kept < batches.size:
        batches, saw_end = batches[:kept], False
    next_offset = end_offset if saw_end else int(batches["last_offset"][-1]) + 1 if kept else start_offset
    return _columns(
        octets,
        batches,
        (start_offset, end_offset),
        headers=headers,
        next_offset=max(start_offset, min(next_offset, end_offset)),
        consumed=int(batches["stop"][-1]) if kept else 0,
    )


def _unpack(view: memoryview, octets: Bytes, batches: Table, size_max: int) -> tuple[Bytes, int]:
    """The bytes to walk, and how many batches they are for; the table then says where each one's are."""
    codecs = (batches["attributes"] & COMPRESSION_MASK) * (batches["wanted"] != 0)
    if not codecs.any():
        sizes = (batches["stop"] - batches["start"]) * (batches["wanted"] != 0)
        return octets, _fitting(np.cumsum(sizes), size_max)
    parts: list[Buffer] = []
    total, kept = 0, 0
    wanted, starts, stops = (batches[name].tolist() for name in ("wanted", "start", "stop"))
    for row, (code, is_wanted) in enumerate(zip(codecs.tolist(), wanted, strict=True)):
        if is_wanted:
            part = plain_records(code, view[starts[row] + HEADER_SIZE : stops[row]], batches, row)
            if parts and total + len(part) > size_max:
                break
            batches["position"][row] = total
            total += len(part)
            batches["end"][row] = total
            parts.append(part)
        kept = row + 1
    return np.frombuffer(b"".join(parts), np.uint8), kept


def _fitting(totals: Int64s, size_max: int) -> int:
    """How many batches stay within the limit; one at least, if there is one."""
    return max(min(totals.size, 1), int(np.searchsorted(totals, size_max, "right")))


def _columns(
    octets: Bytes,
    batches: Table,
    offset_range: tuple[int, int],
    *,
    headers: bool,
    next_offset: int,
    consumed: int,
) -> Decoded:
    batches = batches[batches["wanted"] != 0]
    check_counts(batches)
    room = int(batches["record_count"].astype(np.int64).sum())
    key_at, value_at, offsets, timestamps = (np.empty(room, np.int64) for _ in range(4))
    key_offsets, value_offsets = (np.empty(room + 1, np.int32) for _ in range(2))
    timestamp_types = np.empty(room, np.int32)
    headers_at = np.empty(room if headers else 0, np.int64)
    facts = np.empty(walk.WALK_FACTS, np.int64)
    mistake = walk.walk(
        octets, batches, *offset_range, key_at, key_offsets, value_at, value_offsets,
        offsets, timestamps, timestamp_types, headers_at, facts,
    )  # fmt: skip
    if mistake != OK:
        raise CorruptRecordsError(int(batches["base_offset"][facts[walk.FAILED_BATCH]]), REASONS[mistake])
    rows, null_keys, null_values, header_count = facts[: walk.FAILED_BATCH].tolist()
    return Decoded(
        key=_binary(octets, key_at, key_offsets, rows, null_keys),
        value=_binary(octets, value_at, value_offsets, rows, null_values),
        offset=_numbers(pa.int64(), offsets, rows),
        timestamp_ms=_numbers(pa.int64(), timestamps, rows),
        timestamp_type=_numbers(pa.int32(), timestamp_types, rows),
        headers=_headers(octets, headers_at, rows, header_count) if headers else None,
        next_offset=next_offset,
        consumed=consumed,
    )


def _numbers(kind: pa.DataType, values: Int64s | Int32s, rows: int) -> pa.Array:
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(values)], 0)


def _binary(octets: Bytes, at: Int64s, offsets: Int32s, rows: int, nulls: int) -> pa.BinaryArray:
    out = np.empty(int(offsets[rows]), np.uint8)
    walk.gather(octets, at, offsets, rows, out)
    buffers = [_validity(at, rows, nulls), pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers, nulls)


def _validity(at: Int64s, rows: int, nulls: int) -> pa.Buffer | None:
    if nulls == 0:
        return None
    bits = np.zeros((rows + 7) // 8, np.uint8)
    if nulls < rows:
        walk.mark_valid(at, rows, bits)
    return pa.py_buffer(bits)


def _headers(octets: Bytes, headers_at: Int64s, rows: int, count: int) -> pa.ListArray:
    """A list of (key, value) for each row; null, as in Spark's connector, where a record has none."""
    name_at, value_at = (np.empty(count, np.int64) for _ in range(2))
    name_offsets, value_offsets = (np.empty(count + 1, np.int32) for _ in range(2))
    list_offsets = np.empty(rows + 1, np.int32)
    null_values = walk.walk_headers(
        octets, headers_at, rows, list_offsets, name_at, name_offsets, value_at, value_offsets
    )
    names = _text(_binary(octets, name_at, name_offsets, count, 0))
    values = _binary(octets, value_at, value_offsets, count, null_values)
    items = pa.StructArray.from_arrays([names, values], fields=list(HEADERS_TYPE.value_type))
    without = int(np.count_nonzero(headers_at[:rows] < 0))
    buffers = [_validity(headers_at, rows, without), pa.py_buffer(list_offsets)]
    return pa.Array.from_buffers(HEADERS_TYPE, rows, buffers, without, children=[items])


def _text(names: pa.BinaryArray) -> pa.StringArray:
    """Names as text. A name that is no UTF-8 has its bad bytes replaced, as the Java client does."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode(errors="replace") for name in names.to_pylist()], pa.string())
