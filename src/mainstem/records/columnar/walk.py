"""Kernels over records: find each record's parts, then copy keys, values and headers into Arrow's buffers.

The walk writes everything but the bytes themselves, and remembers where those are, so each record is parsed
once and each value copied once. The bytes come from anybody: every length is compared with the end of the
record or batch that holds it before anything is read or written by it, and a mistake ends the walk.
"""

from mainstem.records.batch import TIMESTAMP_TYPE_MASK
from mainstem.records.columnar import errors
from mainstem.records.columnar.compiling import called, inlined, kernel
from mainstem.records.columnar.layout import (
    BATCHES,
    BYTES,
    INT32S,
    INT64,
    INT64S,
    OUT_BYTES,
    OUT_INT32S,
    OUT_INT64S,
    VOID,
    Bytes,
    Int32s,
    Int64s,
    Table,
    int64,
    uint8,
)
from mainstem.records.columnar.memory import copy_bytes, pointer_to

# What a walk reports: rows written, nulls among keys and values, headers, and the batch in which it failed.
ROWS = 0
NULL_KEYS = 1
NULL_VALUES = 2
HEADERS = 3
FAILED_BATCH = 4
WALK_FACTS = 5

# Length, attributes, two deltas, key length, value length and the number of headers: a byte each at least.
RECORD_SIZE_MIN = 7

_OK = errors.OK
_VARINT = errors.VARINT
_RECORD_LENGTH = errors.RECORD_LENGTH
_FIELD_LENGTH = errors.FIELD_LENGTH
_HEADER_COUNT = errors.HEADER_COUNT
_HEADER_NAME = errors.HEADER_NAME
_LEFT_IN_RECORD = errors.LEFT_IN_RECORD
_LEFT_IN_BATCH = errors.LEFT_IN_BATCH
_RECORD_OFFSET = errors.RECORD_OFFSET
_LOG_APPEND_TIME = TIMESTAMP_TYPE_MASK


@called
def read_slowly(data: Bytes, position: int, end: int) -> tuple[int, int]:
    """A zigzag number of up to 64 bits and the position after it, which is -1 if there is no such number."""
    raw = int64(0)
    shift = 0
    while position < end:
        byte = int64(data[position])
        position += 1
        if shift == 63 and byte > 1:
            break
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return ((raw >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(raw & 1), position
        shift += 7
    return int64(0), -1


@inlined
def read_long(data: Bytes, position: int, end: int) -> tuple[int, int]:
    """The same; nearly all have one or two bytes, and only that much is worth inlining."""
    if position < end:
        first = int64(data[position])
        if first < 0x80:
            return (first >> 1) ^ -(first & 1), position + 1
        if position + 1 < end:
            second = int64(data[position + 1])
            if second < 0x80:
                raw = (first & 0x7F) | (second << 7)
                return (raw >> 1) ^ -(raw & 1), position + 2
    return read_slowly(data, position, end)


@inlined
def read_number(data: Bytes, position: int, end: int) -> tuple[int, int]:
    """The same for up to 32 bits, which are five bytes at most."""
    number, position = read_long(data, position, min(end, position + 5))
    if number < -0x80000000 or number > 0x7FFFFFFF:
        return int64(0), -1
    return number, position


@called
def count_headers(data: Bytes, position: int, end: int) -> int:
    """How many headers there are up to the very end of the record, or a negative mistake."""
    count, position = read_number(data, position, end)
    if position < 0:
        return -_VARINT
    # Each takes two bytes at least, so nothing is ever allocated for a larger number.
    if count < 0 or count > (end - position) // 2:
        return -_HEADER_COUNT
    for _ in range(count):
        for part in range(2):
            length, position = read_number(data, position, end)
            if position < 0:
                return -_VARINT
            if length < 0 and part == 0:
                return -_HEADER_NAME
            if length > end - position:
                return -_FIELD_LENGTH
            position += max(length, 0)
    if position != end:
        return -_LEFT_IN_RECORD
    return count


@inlined
def read_field(data: Bytes, position: int, end: int) -> tuple[int, int, int]:
    """Where a key or value is (-1 for null), its length, the position after it (or a negative mistake).

    A mistake found before is passed on, so that it is looked for once in a record.
    """
    if position < 0:
        return -1, 0, position
    length, position = read_number(data, position, end)
    if position < 0:
        return -1, 0, -_VARINT
    if length < 0:
        return -1, 0, position
    if length > end - position:
        return -1, 0, -_FIELD_LENGTH
    return position, length, position + length


@inlined
def read_head(data: Bytes, position: int, end: int) -> tuple[int, int, int, int]:
    """A record's timestamp delta, offset delta, end, and the position of its key (or a negative mistake)."""
    length, position = read_number(data, position, end)
    if position < 0:
        return int64(0), int64(0), 0, -_VARINT
    if length <= 0 or length > end - position:
        return int64(0), int64(0), 0, -_RECORD_LENGTH
    stop = position + length
    timestamp_delta, position = read_long(data, position + 1, stop)
    if position < 0:
        return int64(0), int64(0), 0, -_VARINT
    delta, position = read_number(data, position, stop)
    if position < 0:
        return int64(0), int64(0), 0, -_VARINT
    return timestamp_delta, delta, stop, position


@kernel(
    INT64(
        BYTES, BATCHES, INT64, INT64, OUT_INT64S, OUT_INT32S, OUT_INT64S, OUT_INT32S,
        OUT_INT64S, OUT_INT64S, OUT_INT32S, OUT_INT64S, OUT_INT64S,
    )
)  # fmt: skip
def walk(
    data: Bytes, batches: Table, start_offset: int, end_offset: int,
    key_at: Int64s, key_offsets: Int32s, value_at: Int64s, value_offsets: Int32s,
    offsets: Int64s, timestamps: Int64s, timestamp_types: Int32s, headers_at: Int64s, facts: Int64s,
) -> int:  # fmt: skip
    """Fill the columns with the records of the wanted batches; the arrays have room for all of them.

    `key_at` and `value_at` get the position of the bytes, -1 for null; `headers_at`, unless it is empty, that
    of the headers, -1 for none. The answer is the number of a mistake, or 0.
    """
    octets = pointer_to(data)
    row, null_keys, null_values, header_count = 0, 0, 0, 0
    key_end, value_end = int64(0), int64(0)
    key_offsets[0], value_offsets[0] = 0, 0
    for index in range(batches.size):
        batch = batches[index]
        facts[FAILED_BATCH] = index
        position, end = batch.position, batch.end
        base_timestamp, max_timestamp = batch.base_timestamp, batch.max_timestamp
        span = batch.last_offset - batch.base_offset
        timestamp_type = 1 if batch.attributes & _LOG_APPEND_TIME else 0
        for _ in range(batch.record_count):
            timestamp_delta, delta, stop, position = read_head(octets, position, end)
            key, key_length, position = read_field(octets, position, stop)
            value, value_length, position = read_field(octets, position, stop)
            if position < 0:
                return -position
            if delta < 0 or delta > span:
                return _RECORD_OFFSET
            headers, count = position, int64(0)
            # The usual record has none, which is one byte.
            if stop - position != 1 or octets[position] != 0:
                count = count_headers(octets, position, stop)
                if count < 0:
                    return -count
            position = stop
            offset = batch.base_offset + delta
            if offset < start_offset or offset >= end_offset:
                continue
            key_at[row], value_at[row], offsets[row] = key, value, offset
            timestamps[row] = max_timestamp if timestamp_type else base_timestamp + timestamp_delta
            timestamp_types[row] = timestamp_type
            if headers_at.size:
                headers_at[row] = headers if count else -1
            row += 1
            key_end += key_length
            value_end += value_length
            key_offsets[row], value_offsets[row] = key_end, value_end
            null_keys += key < 0
            null_values += value < 0
            header_count += count
        if position != end:
            return _LEFT_IN_BATCH
    facts[ROWS], facts[HEADERS] = row, header_count
    facts[NULL_KEYS], facts[NULL_VALUES] = null_keys, null_values
    return _OK


@kernel(VOID(BYTES, INT64S, INT32S, INT64, OUT_BYTES))
def gather(data: Bytes, at: Int64s, offsets: Int32s, rows: int, out: Bytes) -> None:
    """Copy each row's bytes to where its offset says; nulls have no bytes."""
    source, target = pointer_to(data), pointer_to(out)
    for row in range(rows):
        begin = int64(offsets[row])
        length = int64(offsets[row + 1]) - begin
        copy_bytes(target, begin, source, at[row], length)


@kernel(VOID(INT64S, INT64, OUT_BYTES))
def mark_valid(at: Int64s, rows: int, bits: Bytes) -> None:
    """Arrow's validity: a bit for each row that has a position. `bits` comes as zeros."""
    for row in range(rows):
        if at[row] >= 0:
            bits[row >> 3] |= uint8(1 << (row & 7))


@kernel(
    INT64(BYTES, INT64S, INT64, OUT_INT32S, OUT_INT64S, OUT_INT32S, OUT_INT64S, OUT_INT32S),
)
def walk_headers(
    data: Bytes,
    headers_at: Int64s,
    rows: int,
    list_offsets: Int32s,
    name_at: Int64s,
    name_offsets: Int32s,
    value_at: Int64s,
    value_offsets: Int32s,
) -> int:
    """The same for the headers of rows that `walk` has checked; the answer is how many values are null."""
    octets = pointer_to(data)
    item, nulls = 0, 0
    name_end, value_end = int64(0), int64(0)
    list_offsets[0] = 0
    name_offsets[0] = 0
    value_offsets[0] = 0
    end = data.size
    for row in range(rows):
        position = headers_at[row]
        if position >= 0:
            count, position = read_number(octets, position, end)
            for _ in range(count):
                length, position = read_number(octets, position, end)
                name_at[item] = position
                name_end += length
                position += length
                length, position = read_number(octets, position, end)
                value_at[item] = position if length >= 0 else -1
                nulls += length < 0
                value_end += max(length, 0)
                position += max(length, 0)
                item += 1
                name_offsets[item] = name_end
                value_offsets[item] = value_end
        list_offsets[row + 1] = item
    return nulls
