"""Committed offsets in a running broker: they are there after a restart, and go when their time has come."""

import asyncio
from collections.abc import Callable
from typing import Any

from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mainstem.protocol.apis.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k16_list_groups import ListGroupsRequest
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.protocol.errors import ErrorCode
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import Client, create_topic


def commit(topic: str, *offsets: int, metadata: str = "", retention_ms: int = -1) -> OffsetCommitRequest:
    """One offset for each partition, from partition 0 on."""
    places = [OffsetCommitRequestPartition(n, offset, -1, metadata) for n, offset in enumerate(offsets)]
    topics = [OffsetCommitRequestTopic(topic, partitions=places)]
    return OffsetCommitRequest("g", retention_time_ms=retention_ms, topics=topics)


async def committed(client: Client, topic: str, count: int = 1) -> list[tuple[int, str]]:
    request = OffsetFetchRequest("g", [OffsetFetchRequestTopic(topic, list(range(count)))])

    async def ask() -> Any:
        return await client.call(request, 7)

    answer = await until(ask, lambda answer: answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert answer.error_code == 0
    return [(part.committed_offset, part.metadata) for part in answer.topics[0].partitions]


async def until(ask: Callable[[], Any], is_so: Callable[[Any], bool]) -> Any:
    """The first answer of which this is so; the test's own limit ends the waiting."""
    while not is_so(answer := await ask()):
        await asyncio.sleep(0.01)
    return answer


async def test_offsets_are_there_after_a_restart(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker()
    client = await connect(broker)
    topic = (await create_topic(client, partitions=3)).name
    await client.call(FindCoordinatorRequest("g"), 3)
    for offset in range(20):
        await client.call(commit(topic, offset, offset + 1, metadata=f"note {offset}"), 9)
    await broker.close()
    again = await make_broker(data_dir=broker.data_dir)
    client = await connect(again)
    assert await committed(client, topic, 3) == [(19, "note 19"), (20, "note 19"), (-1, "")]


async def test_offsets_of_a_deleted_topic_are_gone_after_a_restart(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker()
    client = await connect(broker)
    topic = (await create_topic(client)).name
    other = (await create_topic(client)).name
    await client.call(FindCoordinatorRequest("g"), 3)
    await client.call(commit(topic, 5), 9)
    await client.call(commit(other, 6), 9)
    await client.call(DeleteTopicsRequest([DeleteTopicState(topic)], timeout_ms=10_000))
    assert await committed(client, topic) == [(-1, "")]
    await broker.close()
    again = await make_broker(data_dir=broker.data_dir)
    client = await connect(again)
    assert await committed(client, topic) == [(-1, "")]
    assert await committed(client, other) == [(6, "")]


async def test_an_offset_with_a_time_of_its_own_goes_with_its_group(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker({"offsets.retention.check.interval.ms": 20})
    client = await connect(broker)
    topic = (await create_topic(client)).name
    await client.call(FindCoordinatorRequest("g"), 3)
    answer = await client.call(commit(topic, 5, retention_ms=50), 4)
    assert answer.topics[0].partitions[0].error_code == 0
    await until(lambda: committed(client, topic), lambda found: found == [(-1, "")])
    answer = await client.call(ListGroupsRequest())
    assert answer.groups == []
