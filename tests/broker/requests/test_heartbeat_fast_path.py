"""Heartbeats that come again and again on one connection: the short way answers as the ordinary one."""

import pytest

from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest
from mainstem.protocol.apis.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect
from tests.broker.coordination.test_classic_groups import join, leave, only_member, until_state
from tests.broker.coordination.test_group_configs import alter
from tests.broker.coordination.test_group_configs import join as join_consumer_group
from tests.broker.harness import Client, create_topic, unique_name


@pytest.mark.parametrize("version", range(5))
async def test_the_second_like_heartbeat_goes_the_short_way(
    client: Client, short_ways: list[bool], version: int
) -> None:
    group, member_id = await only_member(client)
    answers = [await client.call(HeartbeatRequest(group, 1, member_id), version) for _ in range(3)]
    assert short_ways == [True, True]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0].error_code == ErrorCode.NONE


async def test_what_is_new_goes_the_ordinary_way(
    broker: InProcessBroker, client: Client, connect: Connect, short_ways: list[bool]
) -> None:
    group, member_id = await only_member(client)
    beat = HeartbeatRequest(group, 1, member_id)
    for _ in range(2):
        await client.call(beat)
    assert (await client.call(HeartbeatRequest(group, 2, member_id))).error_code == (
        ErrorCode.ILLEGAL_GENERATION
    )
    second = await connect(broker)
    second.send(join(group))
    asked = await second.receive()  # it gets its member id first
    second.send(join(group, asked.member_id))
    await until_state(client, group, "PreparingRebalance")
    assert (await client.call(beat)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    await client.call(leave(group, member_id))
    assert (await client.call(beat)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert short_ways == [True, False, False, False]


async def test_a_member_of_a_consumer_group(client: Client, short_ways: list[bool]) -> None:
    topic = await create_topic(client)
    group = unique_name("group")
    joined = await join_consumer_group(client, group, topic.name)
    beat = ConsumerGroupHeartbeatRequest(group, joined.member_id, joined.member_epoch)
    answers = [await client.call(beat, 1) for _ in range(3)]
    assert short_ways == [True, True]
    assert answers[0] == answers[1] == answers[2]
    assert (answers[0].member_id, answers[0].member_epoch) == (joined.member_id, joined.member_epoch)

    await alter(client, group, "consumer.heartbeat.interval.ms", "7000")
    assert (await client.call(beat, 1)).heartbeat_interval_ms == 7000
    await join_consumer_group(client, group, topic.name)
    assert (await client.call(beat, 1)).heartbeat_interval_ms <= 1000  # it waits for a new assignment
    gone = ConsumerGroupHeartbeatRequest(group, joined.member_id, -1)
    assert (await client.call(gone, 1)).error_code == ErrorCode.NONE
    assert (await client.call(beat, 1)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert True not in short_ways[2:]


async def test_the_two_kinds_of_heartbeat_are_not_mixed_up(client: Client, short_ways: list[bool]) -> None:
    """A frame of the other kind may be the same but for its key."""
    topic = await create_topic(client)
    group, member_id = await only_member(client)
    joined = await join_consumer_group(client, unique_name("group"), topic.name)
    classic = HeartbeatRequest(group, 1, member_id)
    consumer = ConsumerGroupHeartbeatRequest(group, joined.member_id, joined.member_epoch)
    for _ in range(2):
        assert (await client.call(classic, 4)).error_code == ErrorCode.NONE
        assert (await client.call(consumer, 1)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert short_ways == [True]
