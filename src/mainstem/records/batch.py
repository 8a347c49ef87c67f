"""The header of a record batch (magic 2), read and patched in place.

The batch is the unit of the whole broker: everything on the produce, fetch and replication paths works on
these 61 bytes. This file must never look at the records behind them.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from mainstem.records.crc import crc32c

Buffer = bytes | bytearray | memoryview

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
assert HEADER_SIZE == 61

# `batch_length` counts what follows it, so a batch occupies this many bytes more.
LOG_OVERHEAD = 12

LENGTH_POSITION = 8
MAGIC_POSITION = 16
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21  # the CRC covers everything from here to the end
LAST_OFFSET_DELTA_POSITION = 23
BASE_TIMESTAMP_POSITION = 27
MAX_TIMESTAMP_POSITION = 35
PRODUCER_ID_POSITION = 43
PRODUCER_EPOCH_POSITION = 51
RECORD_COUNT_POSITION = 57

MAGIC = 2

COMPRESSION_MASK = 0x07
_ZSTD = 4
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40
KNOWN_ATTRIBUTES_MASK = 0x7F

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1
MAX_SEQUENCE = 2**31 - 1

# Base offset, length and leader epoch: the fields in front of the CRC. Written together in one call.
PREFIX = struct.Struct(">qii")
# What a scan needs to hop from batch to batch: base offset, length, magic, last offset delta.
HOP = struct.Struct(">qi4xb6xi")
_LENGTH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_TIMESTAMP = struct.Struct(">q")
# Producer id, producer epoch and base sequence.
_PRODUCER = struct.Struct(">qhi")


class BatchHeader(NamedTuple):
    """All fields of a batch header, in their order on the wire."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes that the batch occupies, length field included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences wrap from 2^31-1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & MAX_SEQUENCE

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_MASK)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_MASK)


def read_header(buf: Buffer, pos: int = 0) -> BatchHeader:
    """The header of the batch at `pos`. The caller has made sure that 61 bytes are there."""
    return BatchHeader._make(HEADER.unpack_from(buf, pos))


def is_transactional(buf: Buffer) -> bool:
    """Whether the batch at the front of `buf`, which may be cut off, is part of a transaction."""
    return len(buf) >= HEADER_SIZE and bool(buf[ATTRIBUTES_POSITION + 1] & TRANSACTIONAL_MASK)


def is_zstd(buf: Buffer) -> bool:
    """Whether the batch at the front of `buf`, which may be cut off, is compressed with zstd."""
    return len(buf) >= HEADER_SIZE and buf[ATTRIBUTES_POSITION + 1] & COMPRESSION_MASK == _ZSTD


def batch_size(buf: Buffer, pos: int = 0) -> int:
    """Bytes that the batch at `pos` says it occupies."""
    return int(_LENGTH.unpack_from(buf, pos + LENGTH_POSITION)[0]) + LOG_OVERHEAD


def compute_crc(buf: Buffer, pos: int, size: int) -> int:
    """The CRC-32C of the batch of `size` bytes at `pos`."""
    return int(crc32c(memoryview(buf)[pos + ATTRIBUTES_POSITION : pos + size]))


def crc_is_valid(buf: Buffer, pos: int = 0) -> bool:
    """Whether the whole batch at `pos` is in `buf` and its checksum is right."""
    if len(buf) - pos < HEADER_SIZE:
        return False
    size = batch_size(buf, pos)
    if size < HEADER_SIZE or pos + size > len(buf):
        return False
    return bool(compute_crc(buf, pos, size) == _CRC.unpack_from(buf, pos + CRC_POSITION)[0])


def iter_headers(buf: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """`(position, header)` of every complete batch; stops before one that is cut off or has a bad length."""
    pos, end = 0, len(buf)
    while end - pos >= HEADER_SIZE:
        header = read_header(buf, pos)
        if header.batch_length < HEADER_SIZE - LOG_OVERHEAD or pos + header.size > end:
            return
        yield pos, header
        pos += header.size


def set_crc(buf: bytearray | memoryview, pos: int = 0) -> None:
    """Compute the checksum of the batch at `pos` anew."""
    _CRC.pack_into(buf, pos + CRC_POSITION, compute_crc(buf, pos, batch_size(buf, pos)))


def set_log_append_time(buf: bytearray | memoryview, pos: int, timestamp_ms: int) -> None:
    """Mark the batch as stamped by the broker: timestamp type, max timestamp and CRC are rewritten.

    The base timestamp and the records' deltas stay; readers take the max timestamp for every record.
    """
    attributes = _ATTRIBUTES.unpack_from(buf, pos + ATTRIBUTES_POSITION)[0] | TIMESTAMP_TYPE_MASK
    _ATTRIBUTES.pack_into(buf, pos + ATTRIBUTES_POSITION, attributes)
    _TIMESTAMP.pack_into(buf, pos + MAX_TIMESTAMP_POSITION, timestamp_ms)
    set_crc(buf, pos)


def stamp_producer(
    buf: bytearray | memoryview,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    *,
    transactional: bool,
    pos: int = 0,
) -> None:
    """Say who sends the batch at `pos`, and whether in a transaction; the CRC is computed anew."""
    attributes = _ATTRIBUTES.unpack_from(buf, pos + ATTRIBUTES_POSITION)[0] & ~TRANSACTIONAL_MASK
    if transactional:
        attributes |= TRANSACTIONAL_MASK
    _ATTRIBUTES.pack_into(buf, pos + ATTRIBUTES_POSITION, attributes)
    _PRODUCER.pack_into(buf, pos + PRODUCER_ID_POSITION, producer_id, producer_epoch, base_sequence)
    set_crc(buf, pos)
