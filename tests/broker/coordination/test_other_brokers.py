"""Transactions over two brokers: one coordinates them, the other leads their partitions and coordinates the
groups whose offsets are in them. Each is a cluster of its own that is told where the other is.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import pytest

from mainstem.broker.coordination.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from mainstem.cluster.records import PartitionChangeRecord, RegisterBrokerRecord
from mainstem.cluster.records.brokers import BrokerEndpoint
from mainstem.protocol.apis.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k16_list_groups import ListGroupsRequest
from mainstem.protocol.apis.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from mainstem.protocol.apis.k61_describe_producers import DescribeProducersRequest, TopicRequest
from mainstem.protocol.apis.k63_broker_heartbeat import BrokerHeartbeatRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.testing.errors import BrokerError
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import MakeBroker
from tests.broker.harness import Client, Topic, create_topic, eventually, unique_name
from tests.broker.transactional import ADDS_BY_ITSELF, VERIFIES, Producer, committed_values

COORDINATOR, LEADER = 1, 2
GROUP, TRANSACTION = 0, 1
SETTINGS = {
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "request.timeout.ms": 2_000,
    "broker.session.timeout.ms": 600_000,  # the brokers introduced here send no heartbeats but the first
}


class Pair(NamedTuple):
    """The broker that coordinates transactions, the one that has everything else, and clients of both."""

    coordinator: InProcessBroker
    leader: InProcessBroker
    to_coordinator: Client
    to_leader: Client

    async def topic(self, name: str = "") -> Topic:
        """On the leader; the coordinator knows who leads it."""
        topic = await create_topic(self.to_leader, name or unique_name(), partitions=2)
        await create_topic(self.to_coordinator, topic.name, partitions=2)
        for broker in (self.coordinator, self.leader):
            await lead(broker, topic.name, LEADER)
        return topic

    async def stop_leader(self) -> None:
        await heartbeat(self.leader, COORDINATOR, want_fence=True)  # it is not waited for
        await self.to_leader.close()
        await self.leader.stop()

    async def producer(self) -> Producer:
        return await Producer(self.to_coordinator, unique_name("id")).init()


async def lead(broker: InProcessBroker, topic: str, leader: int) -> None:
    """Have a broker lead all partitions of a topic, as far as this one knows."""
    found = broker.node.image.topics_by_name[topic]
    server = broker.node.server
    changes: list[Any] = [
        PartitionChangeRecord(part.partition, found.topic_id, leader=leader, isr=[leader], replicas=[leader])
        for part in found.partitions
    ]
    await server.loader.applied(server.metadata_log.append(changes).offset)


async def introduce(broker: InProcessBroker, node_id: int, port: int) -> None:
    """Tell a broker where another one is."""
    record = RegisterBrokerRecord(
        node_id,
        incarnation_id=bytes(15) + bytes([node_id]),
        broker_epoch=broker.node.image.offset + 1,
        end_points=[BrokerEndpoint("PLAINTEXT", "127.0.0.1", port, 0)],
        fenced=False,
    )
    server = broker.node.server
    await server.loader.applied(server.metadata_log.append([record]).offset)
    await heartbeat(broker, node_id)


async def heartbeat(broker: InProcessBroker, node_id: int, *, want_fence: bool = False) -> None:
    """What the other one would send to this one, were they of one cluster."""
    server = broker.node.server
    assert server.controller_role is not None
    request = BrokerHeartbeatRequest(
        node_id, server.image.brokers[node_id].epoch, server.image.offset, want_fence=want_fence
    )
    assert (await server.controller_role.heartbeat(request)).error_code == 0


@pytest.fixture
def pair(runner: asyncio.Runner, make_broker: MakeBroker) -> Iterator[Pair]:
    brokers = two_brokers(make_broker)
    yield runner.run(brokers.__aenter__())
    runner.run(brokers.__aexit__(None, None, None))


@asynccontextmanager
async def two_brokers(make_broker: MakeBroker) -> AsyncIterator[Pair]:
    coordinator = await make_broker({"node.id": COORDINATOR, **SETTINGS})
    leader = await make_broker({"node.id": LEADER, **SETTINGS})
    async with (
        await Client.connect(coordinator.port) as to_coordinator,
        await Client.connect(leader.port) as to_leader,
    ):
        for client in (to_coordinator, to_leader):
            for kind in (GROUP, TRANSACTION):
                found = await client.call(FindCoordinatorRequest(key_type=kind, coordinator_keys=["any"]))
                assert found.coordinators[0].error_code == 0
        await introduce(coordinator, LEADER, leader.port)
        await introduce(leader, COORDINATOR, coordinator.port)
        await lead(coordinator, CONSUMER_OFFSETS, LEADER)
        await lead(leader, TRANSACTION_STATE, COORDINATOR)
        yield Pair(coordinator, leader, to_coordinator, to_leader)
        await heartbeat(coordinator, LEADER, want_fence=True)  # it is not waited for at the end
        with suppress(BrokerError):  # a test may have stopped it
            await heartbeat(leader, COORDINATOR, want_fence=True)


async def send(pair: Pair, producer: Producer, topic: Topic, value: bytes, **options: Any) -> ErrorCode:
    """By the leader of the partition."""
    producer.client = pair.to_leader
    try:
        return await producer.send(topic, value, **options)
    finally:
        producer.client = pair.to_coordinator


async def commit_offset(pair: Pair, producer: Producer, group: str, topic: Topic, offset: int) -> int:
    """In the transaction, by the group's coordinator, which adds its partition to the transaction."""
    positions = [TxnOffsetCommitRequestPartition(0, offset)]
    request = TxnOffsetCommitRequest(
        producer.transactional_id,
        group,
        producer.producer_id,
        producer.producer_epoch,
        topics=[TxnOffsetCommitRequestTopic(topic.name, positions)],
    )
    answer = await pair.to_leader.call(request)
    return int(answer.topics[0].partitions[0].error_code)


async def committed_offset(pair: Pair, group: str, topic: Topic) -> int:
    topics = [OffsetFetchRequestTopics(topic.name, partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=topics)], require_stable=True)
    while True:
        answer = await pair.to_leader.call(request, 9)
        (found,) = answer.groups[0].topics[0].partitions
        if found.error_code != ErrorCode.UNSTABLE_OFFSET_COMMIT:
            return int(found.committed_offset)
        await asyncio.sleep(0.005)


async def completed(producer: Producer, wanted: str) -> None:
    while (await producer.describe()).transaction_state != wanted:
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("commit", [True, False])
async def test_a_transaction_is_ended_where_its_partitions_are(pair: Pair, commit: bool) -> None:
    topic, group = await pair.topic(), unique_name("group")
    producer = await pair.producer()
    assert await send(pair, producer, topic, b"v") == 0
    assert await send(pair, producer, topic, b"w", partition=1) == 0
    assert await commit_offset(pair, producer, group, topic, 7) == 0
    assert await producer.end(commit) == 0
    await completed(producer, "CompleteCommit" if commit else "CompleteAbort")
    assert await committed_values(pair.to_leader, topic) == ([b"v"] if commit else [])
    assert await committed_values(pair.to_leader, topic, 1) == ([b"w"] if commit else [])
    assert await committed_offset(pair, group, topic) == (7 if commit else -1)


async def test_the_coordinator_is_asked_whether_a_partition_is_part_of_a_transaction(pair: Pair) -> None:
    topic = await pair.topic()
    producer = await pair.producer()
    assert await producer.add(topic, 0) == [0]
    assert await send(pair, producer, topic, b"v", version=VERIFIES) == 0
    assert await send(pair, producer, topic, b"x", partition=1, version=VERIFIES) == (
        ErrorCode.TRANSACTION_ABORTABLE
    )
    assert await send(pair, producer, topic, b"x", partition=1, version=VERIFIES - 1) == (
        ErrorCode.INVALID_TXN_STATE
    )
    assert await producer.end(True, 4) == 0
    await completed(producer, "CompleteCommit")
    assert await committed_values(pair.to_leader, topic) == [b"v"]


async def test_many_transactions_share_the_requests_between_brokers(pair: Pair) -> None:
    topic = await pair.topic()
    producers = [await pair.producer() for _ in range(20)]
    clients = [await Client.connect(pair.leader.port) for _ in producers]
    for producer, client in zip(producers, clients, strict=True):
        producer.client = client
    sent = await asyncio.gather(*[producer.send(topic, b"v") for producer in producers])
    assert sent == [0] * len(producers)
    for producer, client in zip(producers, clients, strict=True):
        await client.close()
        producer.client = pair.to_coordinator
        assert await producer.end(True) == 0
    for producer in producers:
        await completed(producer, "CompleteCommit")
    assert await committed_values(pair.to_leader, topic) == [b"v"] * len(producers)


async def test_markers_wait_for_a_leader_that_is_away(pair: Pair) -> None:
    topic = await pair.topic()
    producer = await pair.producer()
    assert await send(pair, producer, topic, b"v") == 0
    await pair.stop_leader()
    assert await producer.end(True) == 0
    assert (await producer.describe()).transaction_state == "PrepareCommit"
    await pair.leader.start()
    await completed(producer, "CompleteCommit")
    async with await Client.connect(pair.leader.port) as client:
        assert await committed_values(client, topic) == [b"v"]


async def test_markers_follow_a_partition_to_its_next_leader(pair: Pair) -> None:
    topic = await pair.topic()
    producer = await pair.producer()
    assert await producer.add(topic, 0) == [0]
    await pair.stop_leader()
    assert await producer.end(True, 4) == 0
    assert (await producer.describe()).transaction_state == "PrepareCommit"
    await lead(pair.coordinator, topic.name, COORDINATOR)
    await completed(producer, "CompleteCommit")


async def test_a_leader_that_does_not_reach_the_coordinator_has_the_producer_try_again(pair: Pair) -> None:
    topic = await pair.topic()
    producer = await pair.producer()
    await introduce(pair.leader, COORDINATOR, 1)  # nobody listens there
    for version in (VERIFIES, ADDS_BY_ITSELF):
        assert await send(pair, producer, topic, b"v", version=version) == ErrorCode.NOT_ENOUGH_REPLICAS
    await lead(pair.leader, TRANSACTION_STATE, -1)
    assert await send(pair, producer, topic, b"v") == ErrorCode.NOT_ENOUGH_REPLICAS


async def test_every_broker_says_who_coordinates(pair: Pair) -> None:
    expected = {GROUP: (LEADER, pair.leader.port), TRANSACTION: (COORDINATOR, pair.coordinator.port)}
    for client in (pair.to_coordinator, pair.to_leader):
        for kind, (node_id, port) in expected.items():
            found = await client.call(FindCoordinatorRequest(key_type=kind, coordinator_keys=["any"]))
            (coordinator,) = found.coordinators
            assert (coordinator.error_code, coordinator.node_id, coordinator.port) == (0, node_id, port)


async def test_only_the_coordinator_and_the_leader_answer_for_theirs(pair: Pair) -> None:
    topic = await pair.topic()
    producer = await pair.producer()
    assert (await pair.to_coordinator.call(ListGroupsRequest())).groups == []
    producer.client = pair.to_leader
    assert (await producer.describe()).error_code == ErrorCode.NOT_COORDINATOR
    assert await producer.end(True) == ErrorCode.NOT_COORDINATOR
    assert await producer.add(topic, 0) == [ErrorCode.NOT_COORDINATOR]
    assert (await producer.try_init()).error_code == ErrorCode.NOT_COORDINATOR
    request = DescribeProducersRequest([TopicRequest(topic.name, [0])])
    described = await pair.to_coordinator.call(request)
    assert described.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (await pair.to_leader.call(request)).topics[0].partitions[0].error_code == 0


async def test_nobody_waits_for_a_coordinator_that_has_moved(pair: Pair) -> None:
    """What was asked of it is given back as soon as the metadata says so."""
    topic = await pair.topic()
    producer = await pair.producer()
    async with silent_port() as port:
        await introduce(pair.leader, COORDINATOR, port)
        sending = asyncio.ensure_future(send(pair, producer, topic, b"v"))
        questions = pair.leader.node.transactions._elsewhere
        await eventually(lambda: any(queue.under_way for queue in questions._queues.values()))
        await lead(pair.leader, TRANSACTION_STATE, LEADER)
        assert await sending == ErrorCode.NOT_ENOUGH_REPLICAS


@asynccontextmanager
async def silent_port() -> AsyncIterator[int]:
    """A port where connections are taken, and nothing is answered."""
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
