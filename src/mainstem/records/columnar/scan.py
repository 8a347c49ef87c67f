"""Kernels over whole batches: find them in a fetch answer, and read their headers into a table.

Nothing here looks at records. No length that the bytes claim is believed before it has been compared
with what is there.
"""

from mainstem.records import batch as header
from mainstem.records.columnar.compiling import inlined, kernel
from mainstem.records.columnar.errors import BATCH_LENGTH, BATCH_OFFSETS, OK, UNKNOWN_MAGIC
from mainstem.records.columnar.layout import (
    BATCHES,
    BYTES,
    INT64,
    OUT_INT64S,
    VOID,
    Bytes,
    Int64s,
    Table,
    int8,
    int64,
)

# Kernels see module constants as literals only when they are plain numbers of this module.
_LOG_OVERHEAD = header.LOG_OVERHEAD
_HEADER_SIZE = header.HEADER_SIZE
_LENGTH = header.LENGTH_POSITION
_MAGIC_POSITION = header.MAGIC_POSITION
_MAGIC = header.MAGIC
_CRC = header.CRC_POSITION
_ATTRIBUTES = header.ATTRIBUTES_POSITION
_LAST_OFFSET_DELTA = header.LAST_OFFSET_DELTA_POSITION
_BASE_TIMESTAMP = header.BASE_TIMESTAMP_POSITION
_MAX_TIMESTAMP = header.MAX_TIMESTAMP_POSITION
_PRODUCER_ID = header.PRODUCER_ID_POSITION
_RECORD_COUNT = header.RECORD_COUNT_POSITION

# What `count_batches` reports: how many, whether one at or after the end was seen, and where it failed.
COUNTED = 0
SAW_END = 1
FAILED_OFFSET = 2
SCAN_FACTS = 3


@inlined
def read_int64(data: Bytes, position: int) -> int:
    value: int = int64(0)
    for index in range(8):
        value = (value << 8) | int64(data[position + index])
    return value


@inlined
def read_int32(data: Bytes, position: int) -> int:
    value: int = int64(int8(data[position]))
    for index in range(1, 4):
        value = (value << 8) | int64(data[position + index])
    return value


@kernel(INT64(BYTES, INT64, OUT_INT64S))
def count_batches(data: Bytes, end_offset: int, facts: Int64s) -> int:
    """How many complete batches there are before the first that starts at `end_offset` or later."""
    facts[COUNTED] = 0
    facts[SAW_END] = 0
    position, size = 0, data.size
    while size - position > _MAGIC_POSITION:
        base_offset = read_int64(data, position)
        facts[FAILED_OFFSET] = base_offset
        if data[position + _MAGIC_POSITION] != _MAGIC:
            return UNKNOWN_MAGIC
        length = read_int32(data, position + _LENGTH)
        if length < _HEADER_SIZE - _LOG_OVERHEAD:
            return BATCH_LENGTH
        if length + _LOG_OVERHEAD > size - position:
            break
        delta = read_int32(data, position + _LAST_OFFSET_DELTA)
        if base_offset < 0 or delta < 0 or base_offset > int64(0x7FFFFFFFFFFFFFFE) - delta:
            return BATCH_OFFSETS
        if base_offset >= end_offset:
            facts[SAW_END] = 1
            break
        facts[COUNTED] += 1
        position += length + _LOG_OVERHEAD
    return OK


@kernel(VOID(BYTES, BATCHES))
def read_headers(data: Bytes, batches: Table) -> None:
    """Fill the table with the batches that `count_batches` has counted and checked."""
    position = 0
    for index in range(batches.size):
        batch = batches[index]
        batch.start = position
        batch.stop = position + read_int32(data, position + _LENGTH) + _LOG_OVERHEAD
        batch.base_offset = read_int64(data, position)
        batch.last_offset = batch.base_offset + read_int32(data, position + _LAST_OFFSET_DELTA)
        batch.base_timestamp = read_int64(data, position + _BASE_TIMESTAMP)
        batch.max_timestamp = read_int64(data, position + _MAX_TIMESTAMP)
        batch.producer_id = read_int64(data, position + _PRODUCER_ID)
        batch.crc = read_int32(data, position + _CRC) & 0xFFFFFFFF
        batch.record_count = read_int32(data, position + _RECORD_COUNT)
        batch.attributes = read_int32(data, position + _ATTRIBUTES - 2) & 0xFFFF
        batch.position = position + _HEADER_SIZE
        batch.end = batch.stop
        batch.wanted = 1
        batch.padding = 0
        position = batch.stop
