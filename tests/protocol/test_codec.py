"""The codec by example: known bytes, chunks, nulls, defaults, tagged fields, and what it refuses."""

from typing import Annotated, ClassVar

import pytest
from msgspec import Struct

from mainstem.protocol import codec
from mainstem.protocol.apis.k00_produce import (
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from mainstem.protocol.apis.k01_fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from mainstem.protocol.apis.k03_metadata import MetadataRequest, MetadataRequestTopic
from mainstem.protocol.apis.k18_api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from mainstem.protocol.apis.k75_describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.schema import I16, I32, DataMessage, tagged, versions

KNOWN = [
    (MetadataRequest(topics=[]), 0, "00000000"),
    (MetadataRequest(topics=None), 1, "ffffffff"),
    (MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4, "00000001 0001 74 01"),
    (MetadataRequest(topics=None, allow_auto_topic_creation=False), 12, "00 00 00 00"),
    (
        MetadataRequest(topics=[MetadataRequestTopic(topic_id=b"\x01" * 16, name=None)]),
        12,
        "02" + "01" * 16 + "00 00 01 00 00",
    ),
    (ApiVersionsRequest(), 0, ""),
    (ApiVersionsRequest(client_software_name="a", client_software_version="1.0"), 3, "02 61 04 312e30 00"),
    (ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(18, 0, 4)]), 0, "0023 00000001 0012 0000 0004"),
    (
        ApiVersionsResponse(api_keys=[ApiVersion(18, 0, 4)], finalized_features_epoch=5),
        3,
        "0000 02 0012 0000 0004 00 00000000 01 01 08 0000000000000005",
    ),
    (DescribeTopicPartitionsRequest(cursor=None), 0, "01 000007d0 ff 00"),
    (DescribeTopicPartitionsRequest(cursor=Cursor("t", 3)), 0, "01 000007d0 01 02 74 00000003 00 00"),
]


@pytest.mark.parametrize(("message", "version", "text"), KNOWN)
def test_known_bytes(message: Struct, version: int, text: str) -> None:
    raw = bytes.fromhex(text)
    assert codec.encode(message, version) == raw
    assert codec.decode(type(message), version, raw) == message


def test_records_are_decoded_without_a_copy() -> None:
    request = ProduceRequest(
        acks=-1, topic_data=[TopicProduceData("t", partition_data=[PartitionProduceData(3, b"records")])]
    )
    buffer = bytearray(codec.encode(request, 9))
    decoded = codec.decode(ProduceRequest, 9, buffer)
    records = decoded.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    records[:] = b"RECORDS"
    assert b"RECORDS" in buffer


class _FileRange:
    length = 300


@pytest.mark.parametrize("version", [11, 12, 18])
def test_records_are_chunks_of_their_own(version: int) -> None:
    on_disk, in_memory = _FileRange(), memoryview(b"batch")
    partitions = [PartitionData(0, records=on_disk), PartitionData(1, records=in_memory), PartitionData(2)]
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])
    chunks = codec.encoder(FetchResponse, version)(response)
    assert chunks[1] is on_disk
    assert chunks[3] is in_memory
    assert len(chunks) == 5
    partitions[0].records = bytes(300)
    assert codec.encode(response, version) == b"".join(
        bytes(300) if chunk is on_disk else chunk  # type: ignore[misc]
        for chunk in chunks
    )


def test_a_message_with_records_in_a_file_is_not_joined() -> None:
    response = FetchResponse(
        responses=[FetchableTopicResponse(partitions=[PartitionData(records=_FileRange())])]
    )
    with pytest.raises(TypeError):
        codec.encode(response, 12)


def test_fields_that_a_version_lacks_are_left_out_and_read_as_their_default() -> None:
    partition = PartitionProduceResponse(base_offset=9, log_start_offset=4, error_message="lost")
    response = ProduceResponse(responses=[TopicProduceResponse("t", partition_responses=[partition])])
    decoded = codec.decode(ProduceResponse, 3, codec.encode(response, 3))
    assert decoded.responses[0].partition_responses == [PartitionProduceResponse(base_offset=9)]


def test_tagged_structs_are_sent_only_when_they_say_something() -> None:
    def encoded(leader: LeaderIdAndEpoch | None) -> bytes:
        partition = PartitionProduceResponse(current_leader=leader)
        message = ProduceResponse(responses=[TopicProduceResponse("t", partition_responses=[partition])])
        return codec.encode(message, 10)

    assert encoded(LeaderIdAndEpoch()) == encoded(None)
    told = encoded(LeaderIdAndEpoch(3, 8))
    assert bytes.fromhex("01 00 09 00000003 00000008 00") in told
    decoded = codec.decode(ProduceResponse, 10, told)
    assert decoded.responses[0].partition_responses[0].current_leader == LeaderIdAndEpoch(3, 8)


def test_tagged_fields_are_known_or_skipped() -> None:
    plain = codec.encode(FetchRequest(rack_id="r"), 15)
    assert plain.endswith(b"\x00")
    tags = bytes.fromhex("03 00 02 0263 01 0d 00000007 0000000000000009 00 8001 03 aabbcc")
    decoded = codec.decode(FetchRequest, 15, plain[:-1] + tags)
    assert decoded == FetchRequest(rack_id="r", cluster_id="c", replica_state=ReplicaState(7, 9))


def test_unknown_tagged_fields_inside_a_struct_are_skipped() -> None:
    short, long = bytes.fromhex("05 01 ff"), bytes.fromhex("8001 8001") + bytes(128)
    raw = b"\x02" + bytes(16) + b"\x02t" + b"\x02" + short + long + b"\x01\x00\x00"
    decoded = codec.decode(MetadataRequest, 12, raw)
    assert decoded.topics == [MetadataRequestTopic(name="t")]


def test_a_known_tagged_field_must_fill_its_size() -> None:
    plain = codec.encode(FetchRequest(), 15)[:-1]
    for section in ("01 00 03 0263ff", "01 00 01 02", "01 01 0c 00000007 0000000000000009"):
        with pytest.raises(ProtocolError):
            codec.decode(FetchRequest, 15, plain + bytes.fromhex(section))


@pytest.mark.parametrize(
    ("version", "text"),
    [
        (0, "ffffffff"),
        (1, "fffffffe"),
        (4, "00000001 ffff 01"),
        (4, "00000001 0001 ff 01"),
        (9, "02 00 00 00 00 00 00"),
        (12, "00 00 00 00 00"),
        (12, "00 00 00"),
    ],
    ids=["null array", "negative count", "null name", "not UTF-8", "null compact name", "rest", "cut"],
)
def test_malformed_messages_are_refused(version: int, text: str) -> None:
    with pytest.raises(ProtocolError):
        codec.decode(MetadataRequest, version, bytes.fromhex(text))


def test_a_string_is_no_longer_in_flexible_versions() -> None:
    topic = MetadataRequest(topics=[MetadataRequestTopic(name="x" * 32_767)])
    for version in (4, 9):
        assert codec.decode(MetadataRequest, version, codec.encode(topic, version)) == topic
    assert topic.topics is not None
    topic.topics[0].name = "x" * 32_768
    with pytest.raises(ProtocolError):
        codec.decode(MetadataRequest, 9, codec.encode(topic, 9))


def test_a_nullable_struct_has_one_of_two_markers() -> None:
    with pytest.raises(ProtocolError):
        codec.decode(DescribeTopicPartitionsRequest, 0, bytes.fromhex("01 000007d0 02 02 74 00000003 00 00"))


def test_values_that_do_not_fit_are_refused() -> None:
    for message in (
        ProduceRequest(acks=40_000),
        ProduceRequest(topic_data=[TopicProduceData(name=None)]),  # type: ignore[arg-type]
        ProduceRequest(transactional_id="x" * 40_000),
        ProduceRequest(topic_data=None),  # type: ignore[arg-type]
    ):
        with pytest.raises(ProtocolError):
            codec.encode(message, 5)


@pytest.mark.parametrize("version", [-1, 2, 14])
def test_versions_that_do_not_exist_are_refused(version: int) -> None:
    with pytest.raises(ProtocolError):
        codec.decoder(ProduceRequest, version)
    with pytest.raises(ProtocolError):
        codec.encoder(ProduceRequest, version)


def test_functions_are_compiled_once() -> None:
    assert codec.decoder(ProduceRequest, 9) is codec.decoder(ProduceRequest, 9)
    assert codec.encoder(ProduceRequest, 9) is codec.encoder(ProduceRequest, 9)


class _StoredRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=2, versions="0-1", flexible="0+")
    name: str = ""
    level: Annotated[I16, versions("1+")] = 7
    replicas: Annotated[list[I32], tagged(0, "1+")] = []


def test_messages_that_are_stored_use_the_same_language() -> None:
    record = _StoredRecord("f", 3, [1, 2])
    assert codec.encode(record, 0) == bytes.fromhex("02 66 00")
    assert codec.encode(record, 1) == bytes.fromhex("02 66 0003 01 00 09 03 00000001 00000002")
    assert codec.decode(_StoredRecord, 1, codec.encode(record, 1)) == record
    assert codec.decode(_StoredRecord, 0, codec.encode(record, 0)) == _StoredRecord("f", 7)
