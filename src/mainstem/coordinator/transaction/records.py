"""The records of `__transaction_state`, in Kafka's own schemas: one per transactional id, the newest counts.

A key begins with its type, a value with its version; a record without a value forgets the transactional id.
"""

from typing import Annotated, ClassVar, Final

from msgspec import Struct

from mainstem.coordinator.transaction.metadata import State, TransactionMetadata
from mainstem.protocol import codec
from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.schema import I8, I16, I32, I64, DataMessage, nullable, parse_versions, tagged

_KEY_TYPE: Final = b"\0\0"
# Kafka's since the feature transaction.version is 1 or more.
_VALUE_VERSION: Final = 1
_VALUE_PREFIX: Final = _VALUE_VERSION.to_bytes(2, "big")


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


def encode_key(transactional_id: str) -> bytes:
    return _KEY_TYPE + codec.encode(TransactionLogKey(transactional_id), 0)


def encode_value(metadata: TransactionMetadata) -> bytes:
    """As Kafka writes it: an empty transaction has no list of partitions, any other has one."""
    partitions: list[PartitionsSchema] | None = None
    if metadata.state is not State.EMPTY:
        partitions = [PartitionsSchema(topic, indexes) for topic, indexes in metadata.by_topic().items()]
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        previous_producer_id=metadata.previous_producer_id,
        next_producer_id=metadata.next_producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=metadata.updated_ms,
        transaction_start_timestamp_ms=metadata.started_ms,
        client_transaction_version=metadata.client_version,
    )
    return _VALUE_PREFIX + codec.encode(value, _VALUE_VERSION)


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
