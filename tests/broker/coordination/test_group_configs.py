"""Settings of groups in a running broker: what a member of the group is told follows them."""

from typing import Any

from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mainstem.protocol.apis.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mainstem.protocol.apis.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from mainstem.protocol.errors import ErrorCode
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import Client, create_topic, unique_name

GROUP = 32


async def join(client: Client, group: str, topic: str) -> Any:
    """The answer to a new member, once the coordinator is there."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=unique_name("member"),
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    await client.call(FindCoordinatorRequest(coordinator_keys=[group]))
    while True:
        answer = await client.call(request)
        if answer.error_code not in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
            return answer


async def alter(client: Client, group: str, name: str, value: str | None) -> None:
    config = AlterableConfig(name, 0 if value is not None else 1, value)
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP, group, [config])])
    answer = await client.call(request)
    assert answer.responses[0].error_code == ErrorCode.NONE


async def test_members_are_told_the_interval_of_their_group(client: Client) -> None:
    topic = await create_topic(client)
    group = unique_name("group")
    answer = await join(client, group, topic.name)
    assert (answer.error_code, answer.heartbeat_interval_ms) == (ErrorCode.NONE, 5000)
    await alter(client, group, "consumer.heartbeat.interval.ms", "7000")
    beat = ConsumerGroupHeartbeatRequest(group, answer.member_id, answer.member_epoch)
    assert (await client.call(beat)).heartbeat_interval_ms == 7000
    assert (await join(client, unique_name("group"), topic.name)).heartbeat_interval_ms == 5000
    await alter(client, group, "consumer.heartbeat.interval.ms", None)
    assert (await client.call(beat)).heartbeat_interval_ms == 5000


async def test_a_member_that_waits_is_told_to_come_sooner(client: Client) -> None:
    """For the next assignment, and then for what the other member has yet to release."""
    topic = await create_topic(client, partitions=3)
    group = unique_name("group")
    await join(client, group, topic.name)
    assert 0 < (await join(client, group, topic.name)).heartbeat_interval_ms <= 1000
    await alter(client, group, "consumer.assignment.interval.ms", "0")
    assert 0 < (await join(client, group, topic.name)).heartbeat_interval_ms <= 1000


async def test_the_consumer_protocol_switched_off(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker({"group.coordinator.rebalance.protocols": "classic"})
    client = await connect(broker)
    topic = await create_topic(client)
    assert (await join(client, "g", topic.name)).error_code == ErrorCode.UNSUPPORTED_VERSION
    described = await client.call(ConsumerGroupDescribeRequest(["g"]))
    assert [group.error_code for group in described.groups] == [ErrorCode.UNSUPPORTED_VERSION]


async def test_a_group_without_a_name_is_no_group(client: Client) -> None:
    described = await client.call(ConsumerGroupDescribeRequest(["missing", ""]))
    assert {group.group_id: group.error_code for group in described.groups} == {
        "missing": ErrorCode.GROUP_ID_NOT_FOUND,
        "": ErrorCode.INVALID_GROUP_ID,
    }
