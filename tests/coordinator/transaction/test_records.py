"""The records of `__transaction_state`: the bytes that Apache Kafka 4.3 writes, there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.coordinator.transaction.metadata import State, TransactionMetadata, by_topic
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

_EMPTY = TransactionMetadata(
    producer_id=1000, producer_epoch=0, timeout_ms=60_000, updated_ms=1_700_000_000_000
)
_ENDING = TransactionMetadata(
    producer_id=7,
    producer_epoch=32_767,
    timeout_ms=15_000,
    updated_ms=1_700_000_000_456,
    state=State.PREPARE_COMMIT,
    partitions=frozenset({("orders", 3), ("orders", 1), ("__consumer_offsets", 17)}),
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


@pytest.mark.parametrize("metadata", [_EMPTY, _ENDING, _ENDED], ids=lambda known: known.state.name)
def test_what_is_written_is_read_again(metadata: TransactionMetadata) -> None:
    assert decode_value(encode_value(metadata)) == metadata


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


def test_an_empty_transaction_has_no_list_of_partitions_and_a_complete_one_has_an_empty_list() -> None:
    head = bytes.fromhex("0001 00000000000003e8 0000 0000ea60 00")
    assert encode_value(_EMPTY).startswith(head + b"\0")
    head = bytes.fromhex("0001 0000000000000008 0000 00003a98 05")
    assert encode_value(_ENDED).startswith(head + b"\1")


def test_the_first_version_of_the_record_is_read() -> None:
    """Written with transaction.version 0: without tags."""
    data = bytes.fromhex(
        "0000 0000000000000007 0002 00003a98 01 00000001 0001 74 00000002 00000000 00000005"
        "0000018bcfe56a15 0000018bcfe5687b"
    )
    assert decode_value(data) == TransactionMetadata(
        producer_id=7,
        producer_epoch=2,
        timeout_ms=15_000,
        updated_ms=0x18BCFE56A15,
        state=State.ONGOING,
        partitions=frozenset({("t", 0), ("t", 5)}),
        started_ms=0x18BCFE5687B,
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
