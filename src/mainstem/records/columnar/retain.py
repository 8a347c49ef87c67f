"""Kernels of compaction: which records of each batch stay, and the batch as it is then written.

A batch that loses nothing is copied as it is. Another one keeps its header, but for what its records say:
length, number, timestamps, checksum. The rules are Kafka's. The bytes come from a file whose checksums were
compared, yet every length is still checked before anything is read by it.
"""

from typing import Any

from mainstem.records import batch as header
from mainstem.records.columnar import errors
from mainstem.records.columnar.build import write_number, zigzag_size
from mainstem.records.columnar.checksum import crc32c_of, write_int32, write_int64
from mainstem.records.columnar.compiling import called, kernel
from mainstem.records.columnar.key_map import entry_of, hashed
from mainstem.records.columnar.layout import (
    BATCHES,
    BYTES,
    INT64,
    INT64S,
    OUT_BYTES,
    OUT_INT64S,
    Bytes,
    Int64s,
    Table,
    int64,
    uint8,
)
from mainstem.records.columnar.memory import copy_bytes, pointer_to
from mainstem.records.columnar.walk import read_field, read_head, read_long, read_number

# A row of the table of batches.
Batch = Any

# What is known of a batch before its records are looked at, as bits.
DELETE_BATCH = 1  # all of it goes
DISCARD_RECORDS = 2  # its records go, whatever their keys
RETAIN_EMPTY = 4  # its header stays, even without records
EMPTY_TRANSACTION = 8  # a marker of which no transaction's records are left

# The columns of the results, one row for each batch.
OUT_START = 0
OUT_SIZE = 1  # 0 for a batch that is gone
MAX_TIMESTAMP = 2
KIND = 3
RESULT_COLUMNS = 4

# Kinds of results.
GONE = 0
AS_IT_WAS = 1
REBUILT = 2
TO_COMPRESS = 3  # the header is followed by plain records, which are still to be compressed
EMPTY = 4

# The scratch row of a record that stays.
_BEGIN = 0
_STOP = 1
_TIMESTAMP = 2
SCRATCH_COLUMNS = 3

# What `retain` reports.
WRITTEN = 0
RECORDS_KEPT = 1
RECORDS_READ = 2
FAILED_BATCH = 3
_HAS_TOMBSTONES = 4
RETAIN_FACTS = 5

# How many bytes a record can grow by when the timestamp it counts from is another one.
RECORD_GROWTH_MAX = 16

_OK = errors.OK
_LEFT_IN_BATCH = errors.LEFT_IN_BATCH
_RECORD_OFFSET = errors.RECORD_OFFSET
_HEADER_SIZE = header.HEADER_SIZE
_LOG_OVERHEAD = header.LOG_OVERHEAD
_LENGTH = header.LENGTH_POSITION
_CRC = header.CRC_POSITION
_ATTRIBUTES = header.ATTRIBUTES_POSITION
_BASE_TIMESTAMP = header.BASE_TIMESTAMP_POSITION
_MAX_TIMESTAMP = header.MAX_TIMESTAMP_POSITION
_RECORD_COUNT = header.RECORD_COUNT_POSITION
_CODEC = header.COMPRESSION_MASK
_LOG_APPEND_TIME = header.TIMESTAMP_TYPE_MASK
_CONTROL = header.CONTROL_MASK
_HORIZON = header.DELETE_HORIZON_MASK
# Of an emptied batch: timestamp type, transactional and control bits.
_EMPTY_MASK = header.TIMESTAMP_TYPE_MASK | header.TRANSACTIONAL_MASK | header.CONTROL_MASK


@called
def choose_records(
    octets: Bytes, batch: Batch, secret: Int64s, entries: Int64s, slots: int,
    latest_offset: int, now_ms: int, kept: Int64s, facts: Int64s,
) -> int:  # fmt: skip
    """Note which records stay; the answer is their number, or a negative mistake."""
    position, end, count = batch.position, batch.end, 0
    is_control = batch.attributes & _CONTROL != 0
    keeps_deletes = batch.attributes & _HORIZON == 0 or now_ms < batch.base_timestamp
    facts[_HAS_TOMBSTONES] = 0
    for _ in range(batch.record_count):
        begin = position
        timestamp_delta, delta, stop, position = read_head(octets, position, end)
        key, key_length, position = read_field(octets, position, stop)
        value, _, position = read_field(octets, position, stop)
        if position < 0:
            return position
        if delta < 0 or delta > batch.last_offset - batch.base_offset:
            return -_RECORD_OFFSET
        position = stop
        offset = batch.base_offset + delta
        stays = True
        if not is_control and offset <= latest_offset:
            stays = key >= 0 and (value >= 0 or keeps_deletes)
            if stays:
                first, second = hashed(octets, key, key_length, secret)
                stays = offset >= entries[entry_of(entries, slots, first, second) + 2] - 1
        if stays:
            kept[count * 3 + _BEGIN], kept[count * 3 + _STOP] = begin, stop
            kept[count * 3 + _TIMESTAMP] = batch.base_timestamp + timestamp_delta
            if batch.attributes & _LOG_APPEND_TIME:
                kept[count * 3 + _TIMESTAMP] = batch.max_timestamp
            count += 1
            if value < 0:
                facts[_HAS_TOMBSTONES] = 1
    if position != end:
        return -_LEFT_IN_BATCH
    return count


@called
def copy_records(
    out: Bytes, at: int, octets: Bytes, kept: Int64s, count: int, base_timestamp: int, shifts: int
) -> int:
    """Write the records that stay; with `shifts` they count their time from another base than before. The
    answer is the position after them.
    """
    for number in range(count):
        begin, stop = kept[number * 3 + _BEGIN], kept[number * 3 + _STOP]
        if shifts == 0:
            copy_bytes(out, at, octets, begin, stop - begin)
            at += stop - begin
            continue
        _, position = read_number(octets, begin, stop)
        attributes = octets[position]
        _, rest = read_long(octets, position + 1, stop)
        delta = kept[number * 3 + _TIMESTAMP] - base_timestamp
        at = write_number(out, at, 1 + zigzag_size(delta) + stop - rest)
        out[at] = attributes
        at = write_number(out, at + 1, delta)
        copy_bytes(out, at, octets, rest, stop - rest)
        at += stop - rest
    return at


@called
def write_header(
    out: Bytes, at: int, end: int, source: Bytes, batch: Batch, attributes: int, base_timestamp: int,
    max_timestamp: int, count: int,
) -> None:  # fmt: skip
    """The header of the batch that is written up to `end`: as before, but for these fields."""
    copy_bytes(out, at, source, batch.start, _HEADER_SIZE)
    write_int32(out, at + _LENGTH, end - at - _LOG_OVERHEAD)
    out[at + _ATTRIBUTES] = uint8((attributes >> 8) & 0xFF)
    out[at + _ATTRIBUTES + 1] = uint8(attributes & 0xFF)
    write_int64(out, at + _BASE_TIMESTAMP, base_timestamp)
    write_int64(out, at + _MAX_TIMESTAMP, max_timestamp)
    write_int32(out, at + _RECORD_COUNT, count)
    write_int32(out, at + _CRC, crc32c_of(out, at + _ATTRIBUTES, end))


@called
def rebuild(
    out: Bytes,
    at: int,
    source: Bytes,
    octets: Bytes,
    batch: Batch,
    kept: Int64s,
    count: int,
    new_horizon: int,
) -> tuple[int, int]:
    """Write the batch with the records that stay; the answer is its end and its largest timestamp."""
    attributes = batch.attributes
    base_timestamp = kept[_TIMESTAMP]
    if new_horizon >= 0:
        base_timestamp = new_horizon
        attributes |= _HORIZON
    elif attributes & _HORIZON:
        base_timestamp = batch.base_timestamp
    max_timestamp = int64(-1)
    for number in range(count):
        max_timestamp = max(max_timestamp, kept[number * 3 + _TIMESTAMP])
    # Under LogAppendTime the old differences stand for nothing.
    shifts = base_timestamp != batch.base_timestamp or attributes & _LOG_APPEND_TIME != 0
    end = copy_records(
        out, at + _HEADER_SIZE, octets, kept, count, base_timestamp, int64(1) if shifts else int64(0)
    )
    write_header(out, at, end, source, batch, attributes, base_timestamp, max_timestamp, count)
    return end, max_timestamp


@kernel(
    INT64(
        BYTES, BYTES, BATCHES, INT64S, INT64S, INT64S, INT64, INT64, INT64,
        OUT_INT64S, OUT_BYTES, OUT_INT64S, OUT_INT64S,
    )
)  # fmt: skip
def retain(
    source_data: Bytes, plain: Bytes, batches: Table, rules: Int64s, secret: Int64s, table: Int64s,
    latest_offset: int, now_ms: int, delete_retention_ms: int,
    scratch: Int64s, out_data: Bytes, results: Int64s, facts: Int64s,
) -> int:  # fmt: skip
    """Write what stays of the batches one behind the other into `out_data`, which has room for all of it.

    `source_data` holds the batches as they are, `plain` their records uncompressed, at the positions that the
    table says. The answer is the number of a mistake, or 0.
    """
    source, octets, out = pointer_to(source_data), pointer_to(plain), pointer_to(out_data)
    entries, kept = pointer_to(table), pointer_to(scratch)
    slots, at = table.size // 3, int64(0)
    for index in range(batches.size):
        batch, rule = batches[index], rules[index]
        facts[FAILED_BATCH] = index
        row = index * 4
        results[row + OUT_START], results[row + OUT_SIZE], results[row + KIND] = at, 0, GONE
        results[row + MAX_TIMESTAMP] = batch.max_timestamp
        if rule & DELETE_BATCH:
            continue
        count: int = int64(0)
        if rule & DISCARD_RECORDS == 0:
            count = choose_records(octets, batch, secret, entries, slots, latest_offset, now_ms, kept, facts)
            facts[RECORDS_READ] += batch.record_count
        if count < 0:
            return -count
        end = at
        if count > 0:
            marks = facts[_HAS_TOMBSTONES] != 0 or rule & EMPTY_TRANSACTION != 0
            horizon = (
                now_ms + delete_retention_ms if marks and batch.attributes & _HORIZON == 0 else int64(-1)
            )
            if count == batch.record_count and horizon < 0:
                end = at + batch.stop - batch.start
                copy_bytes(out, at, source, batch.start, end - at)
                results[row + KIND] = AS_IT_WAS
            else:
                end, results[row + MAX_TIMESTAMP] = rebuild(
                    out, at, source, octets, batch, kept, count, horizon
                )
                results[row + KIND] = TO_COMPRESS if batch.attributes & _CODEC else REBUILT
        elif rule & RETAIN_EMPTY:
            end = at + _HEADER_SIZE
            write_header(
                out, at, end, source, batch, batch.attributes & _EMPTY_MASK, int64(-1), batch.max_timestamp, 0
            )
            results[row + KIND] = EMPTY
        results[row + OUT_SIZE] = end - at
        facts[RECORDS_KEPT] += count
        at = end
    facts[WRITTEN] = at
    return _OK
