"""Whatever bytes arrive, a decoder gives a message or a `ProtocolError`, and allocates nothing for a lie."""

import random
import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mainstem.protocol import codec, headers
from mainstem.protocol.apis.k00_produce import ProduceRequest
from mainstem.protocol.apis.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from mainstem.protocol.apis.k03_metadata import MetadataRequest
from mainstem.protocol.apis.k19_create_topics import CreateTopicsRequest
from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.layout import layout_of
from tests.protocol.messages import MessageFactory, all_messages

MESSAGES = list(all_messages())
NAMES = [cls.__name__ for cls, _ in MESSAGES]
MUTATIONS_PER_VERSION = 12
POISON = (0x00, 0x01, 0x7F, 0x80, 0xFF)


def _survives(cls: type[Any], version: int, data: bytes) -> None:
    """Decodes inside a larger buffer too: what lies behind the frame must not be taken for a part of it."""
    decode = codec.decoder(cls, version)
    for buffer in (data, memoryview(bytearray(data + b"\x01" * 64))):
        try:
            _, pos = decode(buffer, 0, len(data))
        except ProtocolError:
            continue
        assert pos <= len(data)


def _mutate(rng: random.Random, data: bytes) -> bytes:
    mutated = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(mutated) + 1)
        match rng.randrange(5):
            case 0:
                del mutated[at:]
            case 1:
                mutated[at:at] = rng.randbytes(rng.randint(1, 8))
            case 2:
                del mutated[at : at + rng.randint(1, 8)]
            case 3:
                mutated[at : at + 1] = bytes((rng.choice(POISON),))
            case _:
                mutated[at : at + 4] = bytes((rng.choice(POISON),)) * 4
    return bytes(mutated)


@pytest.mark.parametrize(("cls", "versions"), MESSAGES, ids=NAMES)
def test_mutated_messages(cls: type[Any], versions: list[int]) -> None:
    rng = random.Random(cls.__name__)
    for version in versions:
        factory = MessageFactory(f"hostile {cls.__name__} {version}")
        valid = codec.encode(factory.struct(layout_of(cls, version)), version)
        for _ in range(MUTATIONS_PER_VERSION):
            _survives(cls, version, _mutate(rng, valid))


@pytest.mark.parametrize(("cls", "versions"), MESSAGES, ids=NAMES)
def test_every_cut_of_a_message_is_refused(cls: type[Any], versions: list[int]) -> None:
    """Only the last version: its default message is short, and so is every prefix of it."""
    version = versions[-1]
    valid = codec.encode(cls(), version)
    for size in range(len(valid)):
        with pytest.raises(ProtocolError):
            codec.decoder(cls, version)(valid, 0, size)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_random_bytes(data: st.DataObject) -> None:
    cls, versions = data.draw(st.sampled_from(MESSAGES))
    _survives(cls, data.draw(st.sampled_from(versions)), data.draw(st.binary(max_size=120)))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60))
def test_random_bytes_as_headers(data: bytes) -> None:
    try:
        header, pos = headers.decode_request_header(data, 0, len(data))
    except ProtocolError:
        return
    assert pos <= len(data)
    assert header.api_key == int.from_bytes(data[:2], "big", signed=True)


INT32_MAX = b"\x7f\xff\xff\xff"
UVARINT_MAX = b"\xff\xff\xff\xff\x0f"
BOMBS: dict[str, tuple[type[Any], int, bytes]] = {
    "MetadataRequest.topics claims length 2147483647": (MetadataRequest, 0, INT32_MAX),
    "MetadataRequest.topics claims length 4294967294": (MetadataRequest, 12, UVARINT_MAX),
    "MetadataRequestTopic.name claims": (MetadataRequest, 12, b"\x02" + bytes(16) + UVARINT_MAX),
    "PartitionProduceData.records claims length 2147483647": (
        ProduceRequest,
        3,
        b"\xff\xff\x00\x01" + bytes(4) + b"\0\0\0\1\0\1t\0\0\0\1" + bytes(4) + INT32_MAX,
    ),
    "PartitionProduceData.records claims length 4294967294": (
        ProduceRequest,
        9,
        b"\x00\x00\x01" + bytes(4) + b"\x02\x02t\x02" + bytes(4) + UVARINT_MAX,
    ),
    "ForgottenTopic.partitions claims": (
        FetchRequest,
        13,
        bytes(25) + b"\x01\x02" + bytes(16) + UVARINT_MAX,
    ),
    "CreatableTopic.assignments claims": (CreateTopicsRequest, 5, b"\x02\x02t" + bytes(6) + UVARINT_MAX),
    "tagged field 99 claims": (MetadataRequest, 12, b"\x01\x00\x00\x01\x63" + UVARINT_MAX),
    # Each tag takes two bytes or more, so that the loop over four billion of them ends with the frame.
    "tagged field 1 claims 1 bytes, 0 are left": (MetadataRequest, 12, b"\x01\x00\x00" + UVARINT_MAX),
}


@pytest.mark.parametrize("complaint", BOMBS)
def test_a_count_that_cannot_be_true_costs_no_memory(complaint: str) -> None:
    cls, version, start = BOMBS[complaint]
    decode = codec.decoder(cls, version)
    data = start + b"\x01" * 2_000
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match=complaint):
            decode(data, 0, len(data))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


def test_the_largest_count_that_fits_is_bounded_by_the_frame() -> None:
    """A frame full of empty topic names is accepted, and its message is of the order of the frame."""
    count = 100_000
    data = count.to_bytes(4, "big") + bytes(2 * count)
    tracemalloc.start()
    try:
        message = codec.decode(MetadataRequest, 0, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert message.topics is not None
    assert len(message.topics) == count
    assert peak < 100 * len(data)


def test_a_request_of_too_many_tiny_elements_is_refused_before_they_are_made() -> None:
    count = 1_000_000
    data = count.to_bytes(4, "big") + bytes(2 * count)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="array elements"):
            codec.decode(MetadataRequest, 0, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


def test_elements_of_nested_arrays_count_together() -> None:
    topics = [FetchTopic(partitions=[FetchPartition()] * 1000) for _ in range(101)]
    data = codec.encode(FetchRequest(topics=topics), 4)
    with pytest.raises(ProtocolError, match="array elements"):
        codec.decode(FetchRequest, 4, data)
