"""Produces on the short way that are not committed when they are appended: they wait like any other."""

from typing import Any

import pytest
from msgspec.structs import replace

from mainstem.broker.logs.partition import Partition
from mainstem.protocol.apis.k00_produce import PartitionProduceResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect
from tests.broker.harness import (
    Client,
    Topic,
    batch,
    create_topic,
    eventually,
    partition_of,
    produce_request,
    with_follower,
    without_follower,
)

LEADER = 1


def result_of(response: Any) -> PartitionProduceResponse:
    result: PartitionProduceResponse = response.responses[0].partition_responses[0]
    return result


async def learned(client: Client, topic: Topic, **options: Any) -> Any:
    """A request that the client's connection has a short way for."""
    request = produce_request(topic, {0: batch(b"v")}, **options)
    assert result_of(await client.call(request)).error_code == ErrorCode.NONE
    return request


def waiters(partition: Partition) -> int:
    return len(partition.role.ack_waiters.waiting)  # type: ignore[union-attr]


@pytest.mark.parametrize("version", [7, 9, 12, 13])
async def test_what_is_not_committed_yet_is_answered_when_it_is_and_appended_once(
    client: Client, broker: InProcessBroker, short_ways: list[bool], version: int
) -> None:
    topic = await create_topic(client)
    request = produce_request(topic, {0: batch(b"v")})
    ordinary = result_of(await client.call(request, version))
    partition = partition_of(broker, topic)
    with_follower(partition)
    client.send(request, version=version)
    await eventually(lambda: waiters(partition) == 1)
    assert (partition.log.log_end_offset, partition.high_watermark) == (2, 1)
    without_follower(broker, partition)
    assert result_of(await client.receive()) == replace(ordinary, base_offset=1)
    assert partition.log.log_end_offset == 2
    assert short_ways == [True]


async def test_the_leader_alone_is_enough_for_acks_1(
    client: Client, broker: InProcessBroker, short_ways: list[bool]
) -> None:
    topic = await create_topic(client)
    request = await learned(client, topic, acks=LEADER)
    partition = partition_of(broker, topic)
    with_follower(partition)
    assert result_of(await client.call(request)).base_offset == 1
    assert partition.high_watermark == 1
    assert short_ways == [True]


@pytest.mark.parametrize("version", [7, 9, 12, 13])
async def test_a_produce_that_is_not_committed_in_time_says_so(
    client: Client, broker: InProcessBroker, short_ways: list[bool], version: int
) -> None:
    topic = await create_topic(client)
    request = produce_request(topic, {0: batch(b"v")}, timeout_ms=20)
    await client.call(request, version)
    partition = partition_of(broker, topic)
    with_follower(partition)
    result = result_of(await client.call(request, version))
    assert (result.error_code, result.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 1)
    assert (partition.log.log_end_offset, waiters(partition)) == (2, 0)
    assert short_ways == [True]


async def test_a_produce_that_waits_is_told_when_another_broker_leads(
    client: Client, broker: InProcessBroker, short_ways: list[bool]
) -> None:
    topic = await create_topic(client)
    request = await learned(client, topic)
    partition = partition_of(broker, topic)
    with_follower(partition)
    client.send(request)
    await eventually(lambda: waiters(partition) == 1)
    without_follower(broker, partition, leader=2, leader_epoch=1)
    result = result_of(await client.receive())
    assert (result.error_code, result.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    result = result_of(await client.call(request))
    assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.log.log_end_offset == 2
    assert short_ways == [True, False]


async def test_a_producer_that_leaves_while_it_waits_leaves_no_waiter(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic = await create_topic(client)
    leaving = await connect(broker)
    request = await learned(leaving, topic)
    partition = partition_of(broker, topic)
    with_follower(partition)
    leaving.send(request)
    await eventually(lambda: waiters(partition) == 1)
    await leaving.close()
    await eventually(lambda: waiters(partition) == 0)


async def test_too_few_replicas_are_refused_as_on_the_ordinary_way(
    client: Client, broker: InProcessBroker, short_ways: list[bool]
) -> None:
    topic = await create_topic(client)
    request = await learned(client, topic)
    partition = partition_of(broker, topic)
    partition.has_enough_replicas = False
    result = result_of(await client.call(request))
    assert result.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log.log_end_offset == 1
    partition.has_enough_replicas = True
    assert result_of(await client.call(request)).error_code == ErrorCode.NONE
    assert short_ways == [False, True]
