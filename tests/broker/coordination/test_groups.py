"""Which partition keeps a group, and what nobody but the broker may do to it."""

from random import Random

import pytest

from mainstem.broker.coordination.java_hash import java_hash
from mainstem.protocol.apis.k03_metadata import MetadataRequest, MetadataRequestTopic
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mainstem.protocol.apis.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from mainstem.protocol.errors import ErrorCode
from tests.broker.harness import Client, Topic, produce


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("my-group", 1906497762),
        ("console-consumer-12345", 158455506),
        ("gruppe-ü", 673522922),
        ("\U0001f600", 1772899),
        ("polygenelubricants", 0),  # Java's smallest number, which has no positive one
    ],
)
def test_the_hash_is_javas(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_long_ids_hash_like_short_ones() -> None:
    random = Random(1)
    for length in (99, 100, 101, 32_767):
        text = "".join(chr(random.randrange(1, 0xD7FF)) for _ in range(length))
        value = 0
        for character in text:
            value = (31 * value + ord(character)) & 0xFFFFFFFF
        assert java_hash(text) == abs(value - (1 << 32) if value >= 1 << 31 else value)


async def test_internal_topics_are_the_brokers_own(client: Client) -> None:
    await client.call(FindCoordinatorRequest(coordinator_keys=["g"]))
    name = "__consumer_offsets"
    described = await client.call(MetadataRequest([MetadataRequestTopic(name=name)]))
    answer = await produce(client, Topic(name, described.topics[0].topic_id), b"forged")
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    grown = await client.call(CreatePartitionsRequest([CreatePartitionsTopic(name, 60)], 10_000))
    assert grown.results[0].error_code == ErrorCode.INVALID_PARTITIONS
    where = DeleteRecordsTopic(name, [DeleteRecordsPartition(0, -1)])
    deleted = await client.call(DeleteRecordsRequest([where], timeout_ms=10_000))
    assert deleted.topics[0].partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
