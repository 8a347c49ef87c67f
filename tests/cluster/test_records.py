"""Metadata records: Kafka's bytes, both ways, and nothing but a protocol error for other bytes."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.cluster.records import (
    RECORD_CLASSES,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    decode_record,
    encode_record,
    versions_of,
)
from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.layout import layout_of
from tests.protocol.messages import MessageFactory

EVERY_VERSION = [
    (cls, version)
    for cls in RECORD_CLASSES
    for version in range(versions_of(cls).first, versions_of(cls).last + 1)
]
TOPIC_ID = bytes.fromhex("277656de305646f9b4cc4a0b16c169e3")
DIRECTORY = bytes.fromhex("5c7b9dc5a6b94223b48871d2176559a5")

WRITTEN_BY_KAFKA = (Path(__file__).parent / "testdata" / "kafka_records.txt").read_text()


def records_of_kafka() -> Iterator[tuple[bytes, str]]:
    """The bytes of each record in the file, and what it says, without the line breaks."""
    for paragraph in WRITTEN_BY_KAFKA.split("\n\n")[1:]:
        digits, _, text = paragraph.partition("= ")
        yield bytes.fromhex(digits), re.sub(r",\n\s+", ", ", text.strip())


@pytest.mark.parametrize(
    ("cls", "version"), EVERY_VERSION, ids=lambda value: getattr(value, "__name__", value)
)
def test_every_record_survives_encoding_in_every_version(cls: type, version: int) -> None:
    factory = MessageFactory(f"{cls.__name__} {version}")
    for _ in range(30):
        record = factory.struct(layout_of(cls, version))
        assert decode_record(encode_record(record, version)) == record


@pytest.mark.parametrize(("data", "text"), list(records_of_kafka()), ids=lambda value: str(value)[:30])
def test_the_bytes_are_those_of_kafka(data: bytes, text: str) -> None:
    record = decode_record(data)
    assert repr(record) == text
    assert encode_record(record, version=data[2]) == data


def test_every_key_of_kafka_is_declared_once() -> None:
    keys = [cls.SCHEMA.record_api_key for cls in RECORD_CLASSES]  # type: ignore[attr-defined]
    # 6, 13 and 16 were given up before they were ever released.
    assert sorted(keys) == [key for key in range(29) if key not in (6, 13, 16)]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "ends inside a varint"),
        (b"\x00\x02\x00", "frame version 0"),
        (b"\x02\x02\x00", "frame version 2"),
        (b"\x01\x06\x00", "key 6"),
        (b"\x01\x7f\x00", "key 127"),
        (b"\x01\x02\x09", "version 9"),
        (encode_record(TopicRecord("t", TOPIC_ID)) + b"\x00", "followed by 1 bytes"),
    ],
)
def test_what_is_not_understood_is_an_error_that_says_what(data: bytes, what: str) -> None:
    with pytest.raises(ProtocolError, match=what):
        decode_record(data)


@given(st.binary(max_size=200))
def test_random_bytes_give_a_record_or_a_protocol_error(data: bytes) -> None:
    for candidate in (data, b"\x01" + data):
        try:
            decode_record(candidate)
        except ProtocolError:
            pass


@given(st.sampled_from(EVERY_VERSION), st.integers(0, 2**32), st.data())
def test_damaged_records_give_a_record_or_a_protocol_error(
    chosen: tuple[type, int], seed: int, data: st.DataObject
) -> None:
    cls, version = chosen
    whole = bytearray(encode_record(MessageFactory(str(seed)).struct(layout_of(cls, version)), version))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode_record(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    except ProtocolError:
        pass


def test_what_a_change_record_leaves_out_stays_out_of_its_bytes() -> None:
    # Frame version, key and version, the partition and the topic, and no tagged field.
    assert encode_record(PartitionChangeRecord(3, TOPIC_ID)) == b"\x01\x05\x02\0\0\0\x03" + TOPIC_ID + b"\0"
    change = decode_record(encode_record(BrokerRegistrationChangeRecord(1, 16, fenced=-1)))
    assert (change.fenced, change.in_controlled_shutdown, change.cordoned_log_dirs) == (-1, 0, None)


def test_a_large_record_is_no_trouble() -> None:
    replicas = random.Random(1).sample(range(1_000_000), 5_000)
    record = PartitionRecord(0, TOPIC_ID, replicas, replicas, directories=[DIRECTORY] * 5_000)
    assert decode_record(encode_record(record)) == record
