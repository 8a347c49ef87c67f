"""Commits that come again and again on one connection: the short way answers exactly as the ordinary one."""

from typing import Any

import pytest

from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mainstem.protocol.apis.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.protocol.errors import ErrorCode
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import Client, Topic, create_topic, unique_name, with_follower, without_follower


def _commit(
    group: str, topic: Topic, offset: int, *, partition: int = 0, metadata: str | None = "", **fields: Any
) -> OffsetCommitRequest:
    part = OffsetCommitRequestPartition(partition, offset, offset + 1, metadata)
    return OffsetCommitRequest(
        group, topics=[OffsetCommitRequestTopic(topic.name, topic.topic_id, [part])], **fields
    )


async def _committed(client: Client, group: str, topic: Topic, partition: int = 0) -> tuple[int, int, str]:
    where = [OffsetFetchRequestTopics(topic.name, topic.topic_id, [partition])]
    answer = await client.call(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=where)]))
    (part,) = answer.groups[0].topics[0].partitions
    return part.committed_offset, part.committed_leader_epoch, part.metadata


async def _group(client: Client) -> str:
    group = unique_name("group")
    await client.call(FindCoordinatorRequest(coordinator_keys=[group]))
    return group


@pytest.mark.parametrize("version", range(6, 11))
@pytest.mark.parametrize("metadata", ["", None])
async def test_the_second_like_commit_goes_the_short_way(
    client: Client, short_ways: list[bool], version: int, metadata: str | None
) -> None:
    group, topic = await _group(client), await create_topic(client, partitions=2)
    answers = [
        await client.call(_commit(group, topic, offset, metadata=metadata), version) for offset in (5, 6, 3)
    ]
    assert short_ways == [True, True]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0].topics[0].partitions[0].error_code == 0
    assert await _committed(client, group, topic) == (3, 4, "")
    await client.call(_commit(group, topic, 9, partition=1), version)
    assert await _committed(client, group, topic, 1) == (9, 10, "")


async def test_what_is_unusual_goes_the_ordinary_way(client: Client, short_ways: list[bool]) -> None:
    group, topic = await _group(client), await create_topic(client)
    for offset in (1, 2):
        await client.call(_commit(group, topic, offset), 8)
    await client.call(_commit(group, topic, 3, metadata="note"), 8)
    assert await _committed(client, group, topic) == (3, 4, "note")
    await client.call(_commit(group, topic, 4), 7)
    nobody: dict[str, Any] = {"member_id": "nobody", "generation_id_or_member_epoch": 3}
    refused = await client.call(_commit(group, topic, 5, **nobody), 8)
    assert refused.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    again = await client.call(_commit(group, topic, 6, **nobody), 8)
    assert again == refused
    assert await _committed(client, group, topic) == (4, 5, "")
    assert short_ways == [True, False, False, False]


async def test_a_refused_part_is_refused_each_time(client: Client, short_ways: list[bool]) -> None:
    group, topic = await _group(client), await create_topic(client)
    request = _commit(group, topic, 1)
    request.topics[0].partitions.insert(0, OffsetCommitRequestPartition(99, 1))
    unknown = _commit(group, topic, 1)
    unknown.topics.insert(
        0, OffsetCommitRequestTopic("no-such-topic", partitions=unknown.topics[0].partitions)
    )
    for odd in (request, unknown):
        answers = [await client.call(odd, 8) for _ in range(3)]
        codes = [part.error_code for answered in answers[0].topics for part in answered.partitions]
        assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]
        assert answers[0] == answers[1] == answers[2]
    assert True not in short_ways


async def test_a_topic_that_is_gone_is_unknown(client: Client, short_ways: list[bool]) -> None:
    group, topic = await _group(client), await create_topic(client)
    for offset in (1, 2):
        await client.call(_commit(group, topic, offset), 8)
    await client.call(DeleteTopicsRequest([DeleteTopicState(topic.name)], timeout_ms=10_000))
    answer = await client.call(_commit(group, topic, 3), 8)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert short_ways == [True, False]


async def test_a_commit_that_cannot_be_written_is_refused_and_forgotten(
    broker: InProcessBroker, client: Client, short_ways: list[bool]
) -> None:
    group, topic = await _group(client), await create_topic(client)
    for offset in (1, 2):
        await client.call(_commit(group, topic, offset), 8)
    partition = broker.node.replicas.by_topic("__consumer_offsets", broker.node.groups.partition_of(group))
    partition.has_enough_replicas = False
    answer = await client.call(_commit(group, topic, 3), 8)
    partition.has_enough_replicas = True
    assert answer.topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert short_ways == [True, True]
    assert await _committed(client, group, topic) == (2, 3, "")


async def test_pipelined_commits_are_answered_in_order(client: Client) -> None:
    group, topic = await _group(client), await create_topic(client)
    client.send(*(_commit(group, topic, offset) for offset in range(50)), version=8)
    answers = [await client.receive() for _ in range(50)]
    assert all(answer == answers[0] for answer in answers)
    assert await _committed(client, group, topic) == (49, 50, "")


async def test_a_commit_waits_for_its_replicas_as_long_as_the_setting_says(
    make_broker: MakeBroker, connect: Connect, short_ways: list[bool]
) -> None:
    broker = await make_broker({"offsets.commit.timeout.ms": 30})
    client = await connect(broker)
    group, topic = await _group(client), await create_topic(client)
    assert (await client.call(_commit(group, topic, 1), 8)).topics[0].partitions[0].error_code == 0
    partition = broker.node.replicas.by_topic("__consumer_offsets", broker.node.groups.partition_of(group))
    with_follower(partition)
    for offset in (2, 3):
        answer = await client.call(_commit(group, topic, offset), 8)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert short_ways == [True, True]
    without_follower(broker, partition)
    assert await _committed(client, group, topic) == (3, 4, "")
