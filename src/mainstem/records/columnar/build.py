"""Kernels that turn rows into records: order the rows by partition, cut them into batches, write the bytes.

The inputs are ours (Arrow arrays that have been taken apart), so lengths are trusted here; sizes that a batch
cannot have are found while it is planned, before a byte is written.
"""

from mainstem.records.batch import HEADER_SIZE
from mainstem.records.columnar.compiling import called, inlined, kernel
from mainstem.records.columnar.layout import (
    BYTES,
    INT32S,
    INT64,
    INT64S,
    OUT_BYTES,
    OUT_INT64S,
    PLANS,
    VOID,
    Bytes,
    Int32s,
    Int64s,
    Table,
    int64,
    uint8,
)
from mainstem.records.columnar.memory import copy_bytes, pointer_to

_HEADER_SIZE = HEADER_SIZE


@inlined
def zigzag_size(number: int) -> int:
    """How many bytes `write_number` takes for it."""
    raw = (number << 1) ^ (number >> 63)
    size = 1
    while raw < 0 or raw > 0x7F:
        raw = (raw >> 7) & 0x01FFFFFFFFFFFFFF
        size += 1
    return size


@inlined
def write_number(out: Bytes, position: int, number: int) -> int:
    """Write a zigzag varint; the answer is the position after it."""
    raw = (number << 1) ^ (number >> 63)
    while raw < 0 or raw > 0x7F:
        out[position] = uint8((raw & 0x7F) | 0x80)
        raw = (raw >> 7) & 0x01FFFFFFFFFFFFFF
        position += 1
    out[position] = uint8(raw)
    return position + 1


@called
def write_field(out: Bytes, position: int, data: Bytes, begin: int, length: int) -> int:
    """Write a length and its bytes; a negative length is null."""
    position = write_number(out, position, length)
    if length > 0:
        copy_bytes(out, position, data, begin, length)
        position += length
    return position


@kernel(VOID(INT32S, INT64, OUT_INT64S, OUT_INT64S))
def group_rows(partitions: Int32s, lowest: int, ends: Int64s, order: Int64s) -> None:
    """The rows of each partition in their order: those of partition `lowest + i` end at `ends[i]` in `order`.

    `ends` comes as zeros, one for each number from the lowest partition to the highest.
    """
    for row in range(partitions.size):
        ends[partitions[row] - lowest] += 1
    total = 0
    for group in range(ends.size):
        count = ends[group]
        ends[group] = total
        total += count
    for row in range(partitions.size):
        group = partitions[row] - lowest
        order[ends[group]] = row
        ends[group] += 1


@kernel(VOID(INT64S, INT32S, INT32S, OUT_INT64S))
def header_sizes(list_ends: Int64s, name_lengths: Int32s, value_lengths: Int32s, sizes: Int64s) -> None:
    """How many bytes the headers of each row take, their count included."""
    item = 0
    for row in range(list_ends.size):
        size = zigzag_size(list_ends[row] - item)
        while item < list_ends[row]:
            size += zigzag_size(int64(name_lengths[item])) + name_lengths[item]
            size += zigzag_size(int64(value_lengths[item])) + max(value_lengths[item], 0)
            item += 1
        sizes[row] = size


@kernel(
    INT64(INT64S, INT64S, INT64, INT32S, INT32S, INT64S, INT64S, INT64, OUT_INT64S, PLANS),
)
def plan_batches(
    order: Int64s,
    ends: Int64s,
    lowest: int,
    key_lengths: Int32s,
    value_lengths: Int32s,
    timestamps: Int64s,
    headers: Int64s,
    batch_bytes: int,
    bodies: Int64s,
    plans: Table,
) -> int:
    """Cut the ordered rows into batches of at most `batch_bytes`, or of one record; the answer is how many.

    `bodies` gets the length of each record in order, and `plans` what each batch's header has to say.
    """
    batches = 0
    place = 0
    for group in range(ends.size):
        size, first = batch_bytes, place
        while place < ends[group]:
            row = order[place]
            key_length, value_length = int64(key_lengths[row]), int64(value_lengths[row])
            fixed = 1 + zigzag_size(key_length) + max(key_length, 0)
            fixed += zigzag_size(value_length) + max(value_length, 0)
            fixed += headers[row] if headers.size else 1
            timestamp = timestamps[row]
            base = timestamps[order[first]]
            body = fixed + zigzag_size(place - first) + zigzag_size(timestamp - base)
            if size + zigzag_size(body) + body > batch_bytes:
                first, size, base = place, int64(_HEADER_SIZE), timestamp
                body = fixed + 2
                plans[batches].partition = lowest + group
                plans[batches].first = first
                plans[batches].base_timestamp = timestamp
                plans[batches].max_timestamp = timestamp
                batches += 1
            bodies[place] = body
            size += zigzag_size(body) + body
            place += 1
            plan = plans[batches - 1]
            plan.stop = place
            plan.size = size
            plan.max_timestamp = max(plan.max_timestamp, timestamp)
    return batches


@kernel(
    VOID(
        OUT_BYTES, INT64, INT64, INT64S, INT64S, INT64S, BYTES, INT32S, INT32S, BYTES, INT32S, INT32S,
        INT64S, BYTES, INT32S, INT32S, BYTES, INT32S, INT32S,
    )
)  # fmt: skip
def write_records(
    out: Bytes,
    first: int,
    stop: int,
    order: Int64s,
    bodies: Int64s,
    timestamps: Int64s,
    keys: Bytes,
    key_offsets: Int32s,
    key_lengths: Int32s,
    values: Bytes,
    value_offsets: Int32s,
    value_lengths: Int32s,
    list_ends: Int64s,
    names: Bytes,
    name_offsets: Int32s,
    name_lengths: Int32s,
    items: Bytes,
    item_offsets: Int32s,
    item_lengths: Int32s,
) -> None:
    """Write the records of the ordered rows from `first` to `stop`, which fill `out`."""
    target, position = pointer_to(out), 0
    key_bytes, value_bytes = pointer_to(keys), pointer_to(values)
    name_bytes, item_bytes = pointer_to(names), pointer_to(items)
    base = timestamps[order[first]]
    for place in range(first, stop):
        row = order[place]
        position = write_number(target, position, bodies[place])
        target[position] = uint8(0)
        position = write_number(target, position + 1, timestamps[row] - base)
        position = write_number(target, position, place - first)
        position = write_field(target, position, key_bytes, int64(key_offsets[row]), int64(key_lengths[row]))
        position = write_field(
            target, position, value_bytes, int64(value_offsets[row]), int64(value_lengths[row])
        )
        begin, end = int64(0), int64(0)
        if list_ends.size:
            begin, end = list_ends[row - 1] if row else 0, list_ends[row]
        position = write_number(target, position, end - begin)
        for item in range(begin, end):
            position = write_field(
                target, position, name_bytes, int64(name_offsets[item]), int64(name_lengths[item])
            )
            position = write_field(
                target, position, item_bytes, int64(item_offsets[item]), int64(item_lengths[item])
            )
