"""The records of `__transaction_state`, in Kafka's own schemas: one per transactional id, the newest counts.

A key begins with its type, a value with its version; a record without a value forgets the transactional id.
"""

import struct
from functools import lru_cache
from typing import Annotated, ClassVar, Final

from msgspec import Struct

from mainstem.coordinator.transaction.metadata import NO_PRODUCER_ID, State, TransactionMetadata
from mainstem.protocol import codec
from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.resources import TopicPartition, by_topic
from mainstem.protocol.schema import I8, I16, I32, I64, DataMessage, nullable, parse_versions, tagged

_KEY_TYPE: Final = b"\0\0"
# Kafka's since the feature transaction.version is 1 or more.
_VALUE_VERSION: Final = 1
_VALUE_PREFIX: Final = _VALUE_VERSION.to_bytes(2, "big")
_NO_TAGS: Final = b"\0"
_KNOWN_SIZE_MAX: Final = 64
# Version, producer id, producer epoch, timeout, status; last update, start; a tag with its size.
_HEAD: Final = struct.Struct(">hqhib")
_TIMES: Final = struct.Struct(">qq")
_LONG_TAG: Final = struct.Struct(">BBq")
_SHORT_TAG: Final = struct.Struct(">BBh")


class TransactionLogKey(Struct, gc=False, frozen=True):
    SCHEMA: ClassVar = DataMessage(record_api_key=0, versions="0")
    transactional_id: str = ""


class PartitionsSchema(Struct, gc=False):
    topic: str = ""
    partition_ids: list[I32] = []


class TransactionLogValue(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0-1", flexible="1+")
    producer_id: I64 = 0
    previous_producer_id: Annotated[I64, tagged(0, "1+")] = -1
    next_producer_id: Annotated[I64, tagged(1, "1+")] = -1
    producer_epoch: I16 = 0
    next_producer_epoch: Annotated[I16, tagged(3, "1+")] = -1
    transaction_timeout_ms: I32 = 0
    transaction_status: I8 = 0
    transaction_partitions: Annotated[list[PartitionsSchema] | None, nullable("0+")] = None
    transaction_last_update_timestamp_ms: I64 = 0
    transaction_start_timestamp_ms: I64 = 0
    client_transaction_version: Annotated[I16, tagged(2, "1+")] = 0


_KNOWN: Final = parse_versions(TransactionLogValue.SCHEMA.versions)


@lru_cache(maxsize=1024)
def encode_key(transactional_id: str) -> bytes:
    return _KEY_TYPE + codec.encode(TransactionLogKey(transactional_id), 0)


def encode_value(metadata: TransactionMetadata) -> bytes:
    """As Kafka writes it: an empty transaction has no list of partitions, any other has one. There are many
    for each transaction, so that this does by hand what the codec does with a `TransactionLogValue`.
    """
    head = _HEAD.pack(
        _VALUE_VERSION,
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.timeout_ms,
        metadata.state,
    )
    partitions = b"\0" if metadata.state is State.EMPTY else _partitions_of(metadata)
    times = _TIMES.pack(metadata.updated_ms, metadata.started_ms)
    return b"".join((head, partitions, times, _encode_tags(metadata)))


def _partitions_of(metadata: TransactionMetadata) -> bytes:
    """The same ones come again and again: in the records of one transaction, and in the next ones. Large
    sets are not worth their place in memory.
    """
    partitions = metadata.partitions
    return (_known_partitions if len(partitions) <= _KNOWN_SIZE_MAX else _encode_partitions)(partitions)


def _encode_partitions(partitions: frozenset[TopicPartition]) -> bytes:
    topics = [PartitionsSchema(topic, indexes) for topic, indexes in by_topic(partitions).items()]
    value = TransactionLogValue(transaction_partitions=topics)
    return codec.encode(value, _VALUE_VERSION)[_HEAD.size - len(_VALUE_PREFIX) : -_TIMES.size - len(_NO_TAGS)]


_known_partitions = lru_cache(maxsize=1024)(_encode_partitions)


def _encode_tags(metadata: TransactionMetadata) -> bytes:
    """Each with its number and its size; those that have their default are not there."""
    tags = []
    if metadata.previous_producer_id != NO_PRODUCER_ID:
        tags.append(_LONG_TAG.pack(0, 8, metadata.previous_producer_id))
    if metadata.next_producer_id != NO_PRODUCER_ID:
        tags.append(_LONG_TAG.pack(1, 8, metadata.next_producer_id))
    if metadata.client_version:
        tags.append(_SHORT_TAG.pack(2, 2, metadata.client_version))
    return b"".join((len(tags).to_bytes(1, "big"), *tags))


def decode_key(data: bytes) -> str | None:
    """The transactional id, or None for a key of a type that is not known here."""
    if len(data) < 2:
        raise ProtocolError("a record key is shorter than its type")
    if data[:2] != _KEY_TYPE:
        return None
    return codec.decode(TransactionLogKey, 0, data[2:]).transactional_id


def decode_value(data: bytes) -> TransactionMetadata:
    """What a record says. The epoch before the current one is not in it: Kafka does not write that down."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version not in _KNOWN:
        raise ProtocolError(f"TransactionLogValue has no version {version}")
    value = codec.decode(TransactionLogValue, version, data[2:])
    try:
        state = State(value.transaction_status)
    except ValueError:
        raise ProtocolError(f"a transaction has no state {value.transaction_status}") from None
    return TransactionMetadata(
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        state=state,
        partitions=frozenset(
            (topic.topic, index)
            for topic in value.transaction_partitions or ()
            for index in topic.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )
