"""Why a batch is refused, and how it is changed on its way in: the careful half of an append.

The log checks a batch from its header in one expression; when that says no, or the topic's settings ask for
more than the header can tell, it comes here. Messages name the partition and what to do.
"""

from enum import Enum
from typing import Protocol

from mainstem.config import LogConfig
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CONTROL_MASK,
    HEADER_SIZE,
    KNOWN_ATTRIBUTES_MASK,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BatchHeader,
    batch_size,
    compute_crc,
    read_header,
    set_log_append_time,
)
from mainstem.records.compression import CODEC_BY_CONFIG_NAME, Codec, compress
from mainstem.records.record import assemble
from mainstem.storage.errors import InvalidRecordError
from mainstem.storage.incoming.key_check import check_keys
from mainstem.storage.incoming.unpacking import unpacked

_SMALLEST_BYTES = LOG_OVERHEAD + 14  # a message of format 0 with neither key nor value
# What a client may set: a codec that exists, and the transactional bit.
CLIENT_ATTRIBUTES = frozenset(codec | flag for codec in Codec for flag in (0, TRANSACTIONAL_MASK))


class Origin(Enum):
    """Who appends. Only clients are checked for what only brokers may write."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    RAFT_LEADER = "raft leader"


def check_batch(
    data: memoryview, config: LogConfig, origin: Origin, now_ms: int, partition: str
) -> BatchHeader:
    """The header of a batch that may be appended as the leader; KafkaError with the reason otherwise."""
    header = _check_frame(data, config, partition)
    _check_counts(header, partition)
    codec = header.attributes & COMPRESSION_MASK
    if codec > Codec.ZSTD:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"batch for {partition} has unknown compression {codec}"
        )
    if origin is Origin.CLIENT:
        _check_client(header, partition)
        if not config.log_append_time:
            _check_timestamps(header, config, now_ms, partition)
    return header


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def _corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)


def _check_frame(data: memoryview, config: LogConfig, partition: str) -> BatchHeader:
    """Format, length, size and checksum, in the order in which they can be read."""
    if len(data) <= MAGIC_POSITION:
        raise _invalid(f"no whole batch was sent for {partition}, only {len(data)} bytes")
    magic = data[MAGIC_POSITION]
    if magic > MAGIC:
        raise _corrupt(f"batch for {partition} has the unknown message format {magic}")
    size = batch_size(data, 0)
    if size < _SMALLEST_BYTES:
        raise _corrupt(f"batch for {partition} says it has {size} bytes, which is less than any has")
    if size > len(data):
        raise _invalid(f"batch for {partition} says it has {size} bytes, {len(data)} were sent")
    if magic != MAGIC:
        raise _invalid(f"batch for {partition} has message format {magic}; only format 2 is accepted")
    if size < HEADER_SIZE:
        raise _corrupt(f"batch for {partition} has only {size} bytes")
    header = read_header(data)
    if header.size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"batch of {header.size} bytes for {partition} is larger than "
            f"max.message.bytes={config.max_message_bytes}",
        )
    if compute_crc(data, 0, header.size) != header.crc:
        raise _corrupt(f"batch for {partition} has a wrong checksum")
    if header.size < len(data):
        raise _invalid(f"more than one batch was sent for {partition}; a request may carry one per partition")
    return header


def _check_counts(header: BatchHeader, partition: str) -> None:
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        raise _invalid(
            f"batch for {partition} has {header.record_count} records "
            f"but its last offset delta is {header.last_offset_delta}"
        )


def _check_client(header: BatchHeader, partition: str) -> None:
    if header.base_offset != 0:
        raise _invalid(f"batch for {partition} has base offset {header.base_offset}; clients must send 0")
    if header.attributes & CONTROL_MASK:
        raise _invalid(f"clients may not write control records, as the batch for {partition} does")
    if header.attributes & ~TIMESTAMP_TYPE_MASK not in CLIENT_ATTRIBUTES:
        unknown = header.attributes & ~KNOWN_ATTRIBUTES_MASK
        raise _invalid(
            f"batch for {partition} has attributes {header.attributes & 0xFFFF:#06x}"
            + (", of which some bits have no meaning" if unknown else ", which clients may not set")
        )


def check_producer_fields(header: BatchHeader, partition: str) -> None:
    """A client's batch with a producer id needs the rest of what makes it idempotent."""
    if header.producer_epoch < 0:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"batch for {partition} of producer {header.producer_id} has epoch {header.producer_epoch}",
        )
    if header.producer_id < 0 or header.base_sequence < 0:
        raise _invalid(
            f"batch for {partition} of producer {header.producer_id} has epoch {header.producer_epoch} "
            f"and sequence {header.base_sequence}; none of them may be negative"
        )


def _check_timestamps(header: BatchHeader, config: LogConfig, now_ms: int, partition: str) -> None:
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms
    for timestamp in (header.base_timestamp, header.max_timestamp):
        if timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
            message = (
                f"timestamp {timestamp} in a batch for {partition} is out of range: it must be "
                f"between {earliest} and {latest} (message.timestamp.before/after.max.ms)"
            )
            index = 0 if timestamp == header.base_timestamp else header.last_offset_delta
            raise InvalidRecordError(ErrorCode.INVALID_TIMESTAMP, message, [(index, message)])


def needs_decompression(config: LogConfig) -> bool:
    """Whether batches of clients are opened for this topic."""
    return config.compact or config.compression_type != "producer"


class Prepared(Protocol):
    """A batch whose records were checked before, because that takes long."""

    def result(self, config: LogConfig) -> memoryview | None:
        """The batch as a topic with these settings stores it, but for its timestamps; None if that is not
        known. KafkaError when it is refused.
        """


def rewrite_batch(
    data: memoryview,
    config: LogConfig,
    origin: Origin,
    now_ms: int,
    partition: str,
    prepared: Prepared | None = None,
) -> memoryview:
    """The batch as this topic stores it: keys checked, compression and timestamps as configured."""
    ready = prepared.result(config) if prepared is not None else None
    if ready is not None:
        data = ready
    else:
        if config.compact and origin is Origin.CLIENT:
            check_keys(data, config, partition)
        data = recompress(data, config, partition)
    if config.log_append_time:
        set_log_append_time(data, 0, now_ms)
    return data


def recompress(data: memoryview, config: LogConfig, partition: str) -> memoryview:
    """The same records under the topic's codec. They are not taken apart: nothing in them changes."""
    codec = CODEC_BY_CONFIG_NAME.get(config.compression_type)
    if codec is None or data[ATTRIBUTES_POSITION + 1] & COMPRESSION_MASK == codec:
        return data
    header = read_header(data)
    if header.is_control:
        return data
    levels = {
        Codec.GZIP: config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    payload = compress(codec, unpacked(data, config, partition), levels.get(codec))
    attributes = header.attributes & ~COMPRESSION_MASK | codec
    batch = assemble(header._replace(attributes=attributes), payload)
    if len(batch) > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"batch for {partition} has {len(batch)} bytes under compression.type={config.compression_type}, "
            f"more than max.message.bytes={config.max_message_bytes}",
        )
    return memoryview(batch)
