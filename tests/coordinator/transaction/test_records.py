"""The records of `__transaction_state`: the bytes that Apache Kafka 4.3 writes, there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.coordinator.transaction.metadata import State, TransactionMetadata
from mainstem.coordinator.transaction.records import (
    PartitionsSchema,
    TransactionLogValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from mainstem.protocol import codec
from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.resources import by_topic

_EMPTY = TransactionMetadata(
    producer_id=1000, producer_epoch=0, timeout_ms=60_000, updated_ms=1_700_000_000_000
)
_ENDING = TransactionMetadata(
    producer_id=7,
    producer_epoch=32_767,
    timeout_ms=15_000,
    updated_ms=1_700_000_000_456,
    state=State.PREPARE_COMMIT,
    partitions=frozenset({("orders", 3)}),
    started_ms=1_700_000_000_123,
    previous_producer_id=7,
    next_producer_id=8,
    client_version=2,
)
_ENDED = TransactionMetadata(
    producer_id=8,
    producer_epoch=0,
    timeout_ms=15_000,
    updated_ms=1_700_000_000_789,
    state=State.COMPLETE_ABORT,
    started_ms=1_700_000_000_123,
    previous_producer_id=7,
)


# The bytes are what Kafka's own TransactionLog.valueToBytes makes of the same.
@pytest.mark.parametrize(
    ("metadata", "data"),
    [
        (_EMPTY, "000100000000000003e800000000ea6000000000018bcfe56800ffffffffffffffff00"),
        (
            _ENDING,
            "000100000000000000077fff00003a980202076f72646572730200000003000000018bcfe569c80000018bcfe5687b"
            "03000800000000000000070108000000000000000802020002",
        ),
        (
            _ENDED,
            "00010000000000000008000000003a9805010000018bcfe56b150000018bcfe5687b0100080000000000000007",
        ),
    ],
    ids=["empty", "ending", "ended"],
)
def test_a_record_is_what_kafka_writes(metadata: TransactionMetadata, data: str) -> None:
    assert encode_value(metadata).hex() == data
    assert decode_value(bytes.fromhex(data)) == metadata


_places = st.frozensets(st.tuples(st.text(max_size=200), st.integers(0, 2**31 - 1)), max_size=20)


@given(
    metadata=st.builds(
        TransactionMetadata,
        producer_id=st.integers(0, 2**63 - 1),
        producer_epoch=st.integers(0, 32_767),
        timeout_ms=st.integers(1, 2**31 - 1),
        updated_ms=st.integers(0, 2**63 - 1),
        state=st.sampled_from(State),
        partitions=_places,
        started_ms=st.integers(-1, 2**63 - 1),
        previous_producer_id=st.integers(-1, 2**63 - 1),
        next_producer_id=st.integers(-1, 2**63 - 1),
        client_version=st.integers(0, 2),
    )
)
def test_what_is_put_together_by_hand_is_what_the_schema_says(metadata: TransactionMetadata) -> None:
    topics = [PartitionsSchema(topic, indexes) for topic, indexes in by_topic(metadata.partitions).items()]
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        previous_producer_id=metadata.previous_producer_id,
        next_producer_id=metadata.next_producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=None if metadata.state is State.EMPTY else topics,
        transaction_last_update_timestamp_ms=metadata.updated_ms,
        transaction_start_timestamp_ms=metadata.started_ms,
        client_transaction_version=metadata.client_version,
    )
    assert encode_value(metadata) == b"\0\1" + codec.encode(value, 1)


def test_the_key_begins_with_its_type() -> None:
    assert encode_key("shöp") == b"\0\0\0\5sh\xc3\xb6p"
    assert decode_key(b"\0\0\0\5sh\xc3\xb6p") == "shöp"
    assert decode_key(b"\0\1\0\5sh\xc3\xb6p") is None


def test_the_first_version_of_the_record_is_read() -> None:
    """Written with transaction.version 0: without tags."""
    data = "00000000000000000007000200003a98010000000100017400000001000000050000018bcfe569c80000018bcfe5687b"
    assert decode_value(bytes.fromhex(data)) == TransactionMetadata(
        producer_id=7,
        producer_epoch=2,
        timeout_ms=15_000,
        updated_ms=1_700_000_000_456,
        state=State.ONGOING,
        partitions=frozenset({("t", 5)}),
        started_ms=1_700_000_000_123,
    )


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\2", b"\xff\xff", encode_value(_EMPTY)[:-1]])
def test_a_value_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_value(data)


def test_a_state_that_is_none_is_refused() -> None:
    data = bytearray(encode_value(_EMPTY))
    data[16] = 9
    with pytest.raises(ProtocolError, match="no state 9"):
        decode_value(bytes(data))


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\5sh"])
def test_a_key_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_key(data)
