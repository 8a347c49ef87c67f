"""The records inside a batch: building a batch from records, and walking those of a given one.

The broker's produce, fetch and replication paths never call this; compacted topics, recompression, look-up by
timestamp, the metadata log and the command line do.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.primitives import read_varint, read_varlong, write_varint, write_varlong
from mainstem.records.batch import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    PRODUCER_ID_POSITION,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BatchHeader,
    Buffer,
    read_header,
    set_crc,
)
from mainstem.records.compression import (
    Codec,
    CompressionError,
    DecompressionLimitError,
    compress,
    decompress,
)

DECOMPRESSED_SIZE_MAX = 256 * 1024 * 1024

Header = tuple[str, bytes | None]


class RecordError(ValueError):
    """The bytes inside a batch are not the records that its header promises."""


class RecordsTooLargeError(RecordError):
    """Without their compression the records of a batch would become larger than allowed."""


class Record(NamedTuple):
    """One record with its absolute offset and timestamp."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    compression: Codec = Codec.NONE,
    compression_level: int | None = None,
    leader_epoch: int = NO_LEADER_EPOCH,
    attributes: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
) -> bytearray:
    """A batch of `records`, which get the offsets from `base_offset` on, whatever they carry."""
    if not records:
        raise ValueError("a batch needs at least one record")
    base_timestamp = records[0].timestamp
    body = b"".join(
        encode_record(record, delta, record.timestamp - base_timestamp)
        for delta, record in enumerate(records)
    )
    return assemble(
        BatchHeader(
            base_offset=base_offset,
            batch_length=0,
            partition_leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=attributes & ~COMPRESSION_MASK | compression,
            last_offset_delta=len(records) - 1,
            base_timestamp=base_timestamp,
            max_timestamp=max(record.timestamp for record in records),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=len(records),
        ),
        compress(compression, body, compression_level),
    )


def build_batch_of_pairs(
    pairs: Sequence[tuple[bytes, bytes | None]],
    timestamp_ms: int,
    compression: Codec = Codec.NONE,
    transaction_of: tuple[int, int] | None = None,
) -> bytearray:
    """The same, quickly, for records of one moment that have a key, perhaps a value, and no headers. In a
    transaction they are of that producer id and epoch; as in Kafka their sequence numbers begin with 0 every
    time, because nobody looks at those that a coordinator writes.
    """
    parts: list[bytes] = []
    for delta, (key, value) in enumerate(pairs):
        place, key_length = _varint(delta), _varint(len(key))
        if value is None:
            size = len(place) + len(key_length) + len(key) + 4
            parts += (_varint(size), b"\0\0", place, key_length, key, b"\1\0")
        else:
            value_length = _varint(len(value))
            size = len(place) + len(key_length) + len(key) + len(value_length) + len(value) + 3
            parts += (_varint(size), b"\0\0", place, key_length, key, value_length, value, b"\0")
    payload = compress(compression, b"".join(parts))
    count = len(pairs)
    batch = bytearray(HEADER_SIZE + len(payload))
    HEADER.pack_into(
        batch, 0, 0, len(batch) - LOG_OVERHEAD, NO_LEADER_EPOCH, MAGIC, 0, compression, count - 1,
        timestamp_ms, timestamp_ms, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE, count,
    )  # fmt: skip
    if transaction_of is not None:
        batch[ATTRIBUTES_POSITION + 1] |= TRANSACTIONAL_MASK
        _PRODUCER.pack_into(batch, PRODUCER_ID_POSITION, *transaction_of, 0)
    batch[HEADER_SIZE:] = payload
    set_crc(batch)
    return batch


# Producer id, producer epoch and base sequence.
_PRODUCER = struct.Struct(">qhi")
_SMALL_VARINTS = tuple(write_varint(value) for value in range(1024))


def _varint(value: int) -> bytes:
    return _SMALL_VARINTS[value] if value < 1024 else write_varint(value)


def assemble(header: BatchHeader, payload: Buffer) -> bytearray:
    """The batch of this header and these (compressed) records, with length and CRC filled in."""
    batch = bytearray(HEADER_SIZE + len(payload))
    HEADER.pack_into(batch, 0, *header._replace(batch_length=len(batch) - LOG_OVERHEAD))
    batch[HEADER_SIZE:] = payload
    set_crc(batch)
    return batch


def encode_record(record: Record, offset_delta: int, timestamp_delta: int) -> bytes:
    """One record as it stands in a batch, its length in front."""
    parts = [b"\x00", write_varlong(timestamp_delta), write_varint(offset_delta)]
    _put_bytes(parts, record.key)
    _put_bytes(parts, record.value)
    parts.append(write_varint(len(record.headers)))
    for name, value in record.headers:
        _put_bytes(parts, name.encode())
        _put_bytes(parts, value)
    body = b"".join(parts)
    return write_varint(len(body)) + body


def _put_bytes(parts: list[bytes], value: bytes | None) -> None:
    if value is None:
        parts.append(b"\x01")  # zigzag of -1
    else:
        parts += (write_varint(len(value)), value)


def record_bytes(batch: Buffer, max_size: int = DECOMPRESSED_SIZE_MAX) -> bytes | memoryview:
    """The uncompressed records of the batch at the start of `batch`."""
    header = read_header(batch)
    payload = memoryview(batch)[HEADER_SIZE : header.size]
    code = header.attributes & COMPRESSION_MASK
    if code == Codec.NONE:
        return payload
    if code > Codec.ZSTD:
        raise RecordError(f"the batch names an unknown compression, {code}")
    try:
        return decompress(Codec(code), payload, max_size)
    except DecompressionLimitError as error:
        raise RecordsTooLargeError(str(error)) from None
    except CompressionError as error:
        raise RecordError(str(error)) from None


def iter_records(batch: Buffer, max_size: int = DECOMPRESSED_SIZE_MAX) -> Iterator[Record]:
    """The records of the batch at the start of `batch`; RecordError when its header promised others."""
    if len(batch) < HEADER_SIZE:
        raise RecordError("the batch is shorter than its header")
    header = read_header(batch)
    if header.magic != MAGIC:
        raise RecordError(f"the batch has format {header.magic}, not {MAGIC}")
    if header.batch_length < HEADER_SIZE - LOG_OVERHEAD or header.size > len(batch):
        raise RecordError(f"the batch says it has {header.size} bytes, {len(batch)} are here")
    data = record_bytes(batch, max_size)
    stamped_by_broker = bool(header.attributes & TIMESTAMP_TYPE_MASK)
    position, end = 0, len(data)
    for _ in range(header.record_count):
        record, position = _decode_record(data, position, end, header)
        yield record._replace(timestamp=header.max_timestamp) if stamped_by_broker else record
    if position != end:
        raise RecordError(f"{end - position} bytes are left after the last record")


def _decode_record(data: Buffer, position: int, end: int, header: BatchHeader) -> tuple[Record, int]:
    try:
        length, position = read_varint(data, position, end)
        if not 0 < length <= end - position:
            raise RecordError(f"a record says it has {length} bytes, {end - position} are left")
        end = position + length
        timestamp_delta, position = read_varlong(data, position + 1, end)
        offset_delta, position = read_varint(data, position, end)
        key, position = _get_bytes(data, position, end)
        value, position = _get_bytes(data, position, end)
        headers, position = _get_headers(data, position, end)
    except ProtocolError as error:
        raise RecordError(str(error)) from None
    if position != end:
        raise RecordError(f"{end - position} bytes are left over inside a record")
    offset = header.base_offset + offset_delta
    return Record(offset, header.base_timestamp + timestamp_delta, key, value, headers), position


def _get_bytes(data: Buffer, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position, end)
    if length < 0:
        return None, position
    if length > end - position:
        raise RecordError(f"a field of {length} bytes does not fit into its record")
    return bytes(data[position : position + length]), position + length


def _get_headers(data: Buffer, position: int, end: int) -> tuple[Sequence[Header], int]:
    count, position = read_varint(data, position, end)
    if count == 0:
        return (), position
    # Each header takes two bytes at least, so a count beyond that is a lie and nothing is allocated for it.
    if not 0 <= count <= (end - position) // 2:
        raise RecordError(f"a record says it has {count} headers")
    headers: list[Header] = []
    for _ in range(count):
        name, position = _get_bytes(data, position, end)
        if name is None:
            raise RecordError("a header has no name")
        value, position = _get_bytes(data, position, end)
        headers.append((name.decode(errors="replace"), value))
    return headers, position
