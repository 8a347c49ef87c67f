"""Metadata, DescribeCluster and DescribeTopicPartitions: what clients learn of the cluster."""

from typing import Any

import pytest

from mainstem.cluster.records import NoOpRecord
from mainstem.protocol.apis.k03_metadata import MetadataRequest, MetadataRequestTopic
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.protocol.apis.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from mainstem.protocol.apis.k60_describe_cluster import DescribeClusterRequest
from mainstem.protocol.apis.k75_describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import Client, Topic, create_topic, produce, unique_name


def asking(*names: str, **options: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **options)


async def delete(client: Client, topic: Topic) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic.name)], timeout_ms=10_000)
    assert (await client.call(request)).responses[0].error_code == 0


async def grow(client: Client, topic: Topic, count: int) -> None:
    more = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=topic.name, count=count, assignments=None)], timeout_ms=9
    )
    assert (await client.call(more)).results[0].error_code == 0


@pytest.mark.parametrize("version", range(14))
async def test_every_version_describes_the_cluster_and_the_topic(
    client: Client, broker: InProcessBroker, version: int
) -> None:
    topic = await create_topic(client, partitions=3)
    response = await client.call(asking(topic.name), version)
    (node,) = response.brokers
    assert (node.node_id, node.host, node.port) == (1, "127.0.0.1", broker.port)
    assert response.controller_id == (1 if version >= 1 else -1)
    assert response.cluster_id == (broker.node.cluster_id if version >= 2 else None)
    (described,) = response.topics
    assert (described.error_code, described.name, described.is_internal) == (0, topic.name, False)
    assert described.topic_id == (topic.topic_id if version >= 10 else bytes(16))
    assert [p.partition_index for p in described.partitions] == [0, 1, 2]
    for partition in described.partitions:
        assert (partition.error_code, partition.leader_id) == (0, 1)
        assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([1], [1], [])
        assert partition.leader_epoch == (0 if version >= 7 else -1)


@pytest.mark.parametrize("version", range(14))
async def test_null_means_all_topics_and_an_empty_list_none_except_in_version_0(
    client: Client, version: int
) -> None:
    topic = await create_topic(client)
    if version >= 1:
        everything = await client.call(MetadataRequest(topics=None), version)
        assert topic.name in {described.name for described in everything.topics}
    names = {described.name for described in (await client.call(asking(), version)).topics}
    assert (topic.name in names) == (version == 0)


async def test_an_answer_changes_with_the_topic(client: Client) -> None:
    topic = await create_topic(client)
    request = asking(topic.name, allow_auto_topic_creation=False)
    for _ in range(3):
        assert len((await client.call(request)).topics[0].partitions) == 1
    await grow(client, topic, 4)
    assert len((await client.call(request)).topics[0].partitions) == 4
    await delete(client, topic)
    assert (await client.call(request)).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    again = await create_topic(client, topic.name)
    assert (await client.call(request)).topics[0].topic_id == again.topic_id != topic.topic_id


async def test_a_topic_is_found_by_its_id(client: Client) -> None:
    topic = await create_topic(client)
    by_id = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=topic.topic_id)])
    assert (await client.call(by_id)).topics[0].name == topic.name
    unknown = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=bytes(15) + b"\7")])
    (described,) = (await client.call(unknown)).topics
    assert (described.error_code, described.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)


@pytest.mark.parametrize("version", [10, 11])
async def test_topic_ids_in_requests_are_refused_before_version_12(client: Client, version: int) -> None:
    topic = await create_topic(client)
    by_id = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=topic.topic_id)])
    (described,) = (await client.call(by_id, version)).topics
    assert described.error_code == ErrorCode.INVALID_REQUEST


async def test_an_unknown_topic_is_made_on_the_fly_and_usable_at_once(client: Client) -> None:
    names = [unique_name(), unique_name()]
    response = await client.call(asking(*names, names[0]))
    assert {topic.error_code for topic in response.topics} == {0}
    made = Topic(names[0], response.topics[0].topic_id)
    assert (await produce(client, made, b"v")).error_code == 0


async def test_no_topic_is_made_when_the_client_or_the_broker_says_so(
    client: Client, make_broker: MakeBroker, connect: Connect
) -> None:
    name = unique_name()
    response = await client.call(asking(name, allow_auto_topic_creation=False))
    assert response.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    strict = await connect(await make_broker({"auto.create.topics.enable": "false"}))
    response = await strict.call(asking(name))
    assert response.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "x" * 250, "a\0b"])
async def test_a_name_that_no_topic_may_have_is_called_invalid(client: Client, name: str) -> None:
    response = await client.call(asking(name))
    assert response.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_a_name_that_differs_only_in_dot_and_underscore_is_not_made(client: Client) -> None:
    topic = await create_topic(client, unique_name("with.dot"))
    colliding = topic.name.replace(".", "_")
    assert (await client.call(asking(colliding))).topics[0].error_code != 0
    assert (await client.call(asking(topic.name))).topics[0].error_code == 0


async def test_authorized_operations_are_given_only_when_asked_for(client: Client) -> None:
    topic = await create_topic(client)
    plain = await client.call(asking(topic.name))
    assert plain.topics[0].topic_authorized_operations == -(2**31)
    asked = await client.call(asking(topic.name, include_topic_authorized_operations=True))
    assert asked.topics[0].topic_authorized_operations == sum(1 << n for n in (3, 4, 5, 6, 7, 8, 10, 11))


async def test_cached_answers_are_bounded_in_number_and_size(client: Client, broker: InProcessBroker) -> None:
    cache = broker.node.metadata_cache.answers
    for turn in range(300):
        await client.call(asking(f"none-{turn}", allow_auto_topic_creation=False))
    assert len(cache) <= 256
    for turn in range(25):
        names = [f"{turn}-{n}-" + "x" * 200 for n in range(5000)]
        await client.call(asking(*names, allow_auto_topic_creation=False))
    assert sum(len(chunk) for body in cache.values() for chunk in body.chunks) <= 20 * 1024 * 1024


async def test_what_is_told_of_a_topic_is_made_anew_when_that_topic_changes(
    client: Client, broker: InProcessBroker
) -> None:
    first, second = await create_topic(client), await create_topic(client)
    known = broker.node.metadata_cache.topic_answers

    def made(topic: Topic) -> Any:
        (by_name,) = (by_name for key, by_name in known.items() if key[0] == 13 and topic.name in by_name)
        return by_name[topic.name]

    before = await client.call(MetadataRequest(topics=None))
    kept, changed = made(first), made(second)
    await grow(client, second, 3)
    after = await client.call(MetadataRequest(topics=None))
    assert made(first) is kept
    assert made(second) is not changed
    parts = {topic.name: len(topic.partitions) for topic in after.topics}
    assert (parts[first.name], parts[second.name]) == (1, 3)
    assert [topic for topic in after.topics if topic.name == first.name] == [
        topic for topic in before.topics if topic.name == first.name
    ]
    await delete(client, first)
    assert not any(first.name in by_name for by_name in known.values())


async def test_metadata_that_concerns_no_client_leaves_everything_remembered(
    client: Client, broker: InProcessBroker
) -> None:
    server = broker.node.server
    await client.call(MetadataRequest(topics=None))
    generation, answers = server.metadata_cache.generation, dict(server.metadata_cache.answers)
    await server.loader.applied(server.metadata_log.append([NoOpRecord()]).offset)
    assert server.metadata_cache.generation == generation
    assert server.metadata_cache.answers == answers


async def test_each_listener_is_answered_with_its_own_address(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker(
        {
            "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
            "advertised.listeners": "INSIDE://127.0.0.1:0,OUTSIDE://outside.example:9094",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
        }
    )
    inside, outside = broker.node.bound_listeners
    assert inside.port != outside.port
    for bound, expected in ((inside, ("127.0.0.1", inside.port)), (outside, ("outside.example", 9094))):
        async with await Client.connect(bound.port) as client:
            (node,) = (await client.call(asking())).brokers
            assert (node.host, node.port) == expected
            (node,) = (await client.call(DescribeClusterRequest())).brokers
            assert (node.host, node.port) == expected


# ---- DescribeCluster


@pytest.mark.parametrize("version", range(3))
async def test_describe_cluster_names_the_brokers_and_the_controller(
    client: Client, broker: InProcessBroker, version: int
) -> None:
    response = await client.call(DescribeClusterRequest(include_cluster_authorized_operations=True), version)
    assert (response.error_code, response.cluster_id) == (0, broker.node.cluster_id)
    assert response.controller_id == 1
    assert [(b.broker_id, b.port) for b in response.brokers] == [(1, broker.port)]
    assert response.cluster_authorized_operations == sum(1 << n for n in (5, 7, 8, 9, 10, 11, 12))


async def test_describe_cluster_refuses_to_speak_of_controllers(client: Client) -> None:
    for endpoint_type, code in (
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ):
        response = await client.call(DescribeClusterRequest(endpoint_type=endpoint_type))
        assert response.error_code == code
        assert response.error_message


# ---- DescribeTopicPartitions


async def pages(client: Client, names: list[str], limit: int) -> list[list[tuple[str, int]]]:
    found = []
    cursor = None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=cursor,
        )
        response = await client.call(request)
        found.append([(t.name, p.partition_index) for t in response.topics for p in t.partitions])
        if response.next_cursor is None:
            return found
        cursor = Cursor(response.next_cursor.topic_name, response.next_cursor.partition_index)
        assert len(found) < 100, "the pages lead nowhere"


@pytest.mark.parametrize("limit", [-1, 0, 1, 2, 3, 4, 7, 2000])
async def test_pages_hold_every_partition_once_and_in_order(client: Client, limit: int) -> None:
    topics = [await create_topic(client, partitions=count) for count in (3, 1, 3)]
    names = sorted(topic.name for topic in topics)
    found = await pages(client, names, limit)
    everything = [(t.name, n) for t, count in zip(topics, (3, 1, 3), strict=True) for n in range(count)]
    assert [entry for page in found for entry in page] == sorted(everything)
    assert all(len(page) <= max(limit, 1) for page in found)


async def test_unknown_and_impossible_names_have_their_error(client: Client) -> None:
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="nobody"), TopicRequest(name="a/b")])
    codes = {topic.name: topic.error_code for topic in (await client.call(request)).topics}
    assert codes == {
        "nobody": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "a/b": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }


async def test_a_negative_cursor_is_refused(client: Client) -> None:
    topic = await create_topic(client, partitions=3)
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=topic.name)], cursor=Cursor(topic.name, -1)
    )
    (answer,) = (await client.call(request)).topics
    assert (answer.error_code, answer.partitions) == (ErrorCode.INVALID_REQUEST, [])
