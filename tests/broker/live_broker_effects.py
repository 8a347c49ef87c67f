"""The same as `live_effects` for the settings that only a broker or a group has."""

import asyncio
from pathlib import Path
from typing import Any

from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k34_alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from mainstem.protocol.apis.k35_describe_log_dirs import DescribeLogDirsRequest
from mainstem.protocol.apis.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from mainstem.protocol.apis.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mainstem.protocol.apis.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from mainstem.protocol.errors import ErrorCode
from tests.broker.apis.test_administration import create
from tests.broker.coordination.test_group_configs import join
from tests.broker.harness import API_VERSIONS, Client, batch, eventually, produce_request, unique_name
from tests.broker.live_effects import Effect, World, dirty
from tests.broker.transactional import VERIFIES, Producer

# ---- connections


async def max_connections(world: World) -> None:
    await world.alter("1")  # the one of this test
    waiting = await Client.connect(world.broker.port)
    waiting.send(API_VERSIONS)
    answer = asyncio.ensure_future(waiting.receive())
    for _ in range(10):
        assert await world.client.is_served()
    assert not answer.done()
    await world.alter("100")
    assert (await answer).api_keys
    await waiting.close()


async def max_connections_per_ip(world: World) -> None:
    await _connections_are_limited(world, "1", "100")


async def max_connections_per_ip_overrides(world: World) -> None:
    await _connections_are_limited(world, "127.0.0.1:1", "127.0.0.1:100")


async def _connections_are_limited(world: World, few: str, many: str) -> None:
    await world.alter(few)
    async with await Client.connect(world.broker.port) as refused:
        assert await refused.is_closed_by_broker()
    await world.alter(many)
    async with await Client.connect(world.broker.port) as accepted:
        assert await accepted.is_served()


# ---- producers and directories


async def producer_id_expiration_ms(world: World) -> None:
    data = batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0)
    await world.client.call(produce_request(world.topic, {0: data}))
    assert 5 in world.log.producers.state.entries
    await world.alter("1")
    await eventually(lambda: 5 not in world.log.producers.state.entries)


async def transaction_partition_verification(world: World) -> None:
    producer = await Producer(world.client, unique_name("txn")).init()

    async def begin() -> int:
        """Produce to a partition that is not in the transaction."""
        request = produce_request(world.topic, {0: producer.batch(world.topic, b"x", first=0)})
        request.transactional_id = producer.transactional_id
        answer = await world.client.call(request, VERIFIES)
        return int(answer.responses[0].partition_responses[0].error_code)

    assert await begin() == ErrorCode.TRANSACTION_ABORTABLE
    await world.alter("false")
    assert await begin() == 0


async def cordoned_log_dirs(world: World) -> None:
    manager = world.broker.node.log_manager
    fewest = min(manager.dirs, key=lambda log_dir: log_dir.partition_count)
    (other,) = (log_dir for log_dir in manager.dirs if log_dir is not fewest)
    await world.use()
    assert manager.dir_of(world.log) is fewest
    for _ in range(2):  # also where it would be the one with the fewest
        await world.alter(str(fewest.path))
        await world.use()
        assert manager.dir_of(world.log) is other
    described = (await world.client.call(DescribeLogDirsRequest(topics=None))).results
    assert {entry.log_dir: entry.is_cordoned for entry in described} == {
        str(fewest.path): True,
        str(other.path): False,
    }
    topics = [AlterReplicaLogDirTopic(world.topic.name, [0])]
    moved = await world.client.call(
        AlterReplicaLogDirsRequest([AlterReplicaLogDir(str(fewest.path), topics)])
    )
    assert moved.results[0].partitions[0].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    await world.alter("*")
    refused = await create(world.client)
    assert refused.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    growing = CreatePartitionsTopic(name=world.topic.name, count=2, assignments=None)
    grown = await world.client.call(CreatePartitionsRequest(topics=[growing], timeout_ms=10_000))
    assert grown.results[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR


async def alter_log_dirs_rate(world: World) -> None:
    for _ in range(10):
        await world.write(b"x" * 100_000)
    await world.alter("1000")
    manager = world.broker.node.log_manager
    (target,) = (log_dir for log_dir in manager.dirs if log_dir is not manager.dir_of(world.log))
    topics = [AlterReplicaLogDirTopic(world.topic.name, [0])]
    await world.client.call(AlterReplicaLogDirsRequest([AlterReplicaLogDir(str(target.path), topics)]))
    for _ in range(10):
        await world.write(b"x")
    assert manager.moves
    await world.alter("1000000000")
    await eventually(lambda: not manager.moves)
    assert Path(world.log.directory).parent == target.path


# ---- compaction


def limit(field: str, value: str, told: float) -> Effect:
    """What the processes that clean are told."""

    async def effect(world: World) -> None:
        assert getattr(world.broker.node.cleaner.limits(), field) != told
        await world.alter(value)
        assert getattr(world.broker.node.cleaner.limits(), field) == told

    return effect


async def cleaner_threads(world: World) -> None:
    await dirty(world)
    assert not world.broker.node.cleaner.is_cleaning(world.log)
    await world.alter("1")
    await eventually(lambda: world.broker.node.cleaner.is_cleaning(world.log))


async def cleaner_backoff(world: World) -> None:
    """Otherwise nobody would look for the next hour."""
    await world.alter("10")
    await world.set_broker("log.cleaner.threads", "100")
    await dirty(world)
    await eventually(lambda: world.broker.node.cleaner.is_cleaning(world.log))
    await world.set_broker("log.cleaner.threads", None)


# ---- groups


class Member:
    """A member of a group of its own."""

    def __init__(self, world: World, group: str) -> None:
        self._client = world.client
        self._topic = world.topic.name
        self.group = group
        self.answer: Any = None

    async def join(self) -> "Member":
        await self._client.call(FindCoordinatorRequest(coordinator_keys=[self.group]))
        self.answer = await join(self._client, self.group, self._topic)
        assert self.answer.error_code == 0
        return self

    async def beat(self) -> Any:
        request = ConsumerGroupHeartbeatRequest(self.group, self.answer.member_id, self.answer.member_epoch)
        return await self._client.call(request)

    async def described(self) -> Any:
        return (await self._client.call(ConsumerGroupDescribeRequest([self.group]))).groups[0]


async def assignment_interval(world: World) -> None:
    member = await Member(world, world.group).join()
    found = await member.described()
    assert found.assignment_epoch == found.group_epoch
    await world.alter("15000")
    await Member(world, world.group).join()
    found = await member.described()
    assert found.assignment_epoch < found.group_epoch


async def heartbeat_interval(world: World) -> None:
    member = await Member(world, world.group).join()
    assert (await member.beat()).heartbeat_interval_ms == 5000
    await world.alter("6000")
    assert (await member.beat()).heartbeat_interval_ms == 6000


async def session_timeout(world: World) -> None:
    member = await Member(world, world.group).join()
    await world.set_group("consumer.heartbeat.interval.ms", "10")
    assert len((await member.described()).members) == 1
    await world.alter("60")
    await member.beat()
    while (await member.described()).members:
        pass  # a member that never comes again is removed


GROUP_EFFECTS: dict[str, Effect] = {
    "consumer.assignment.interval.ms": assignment_interval,
    "consumer.heartbeat.interval.ms": heartbeat_interval,
    "consumer.session.timeout.ms": session_timeout,
}

BROKER_EFFECTS: dict[str, Effect] = {
    "cordoned.log.dirs": cordoned_log_dirs,
    "group.consumer.assignment.interval.ms": assignment_interval,
    "log.cleaner.backoff.ms": cleaner_backoff,
    "log.cleaner.dedupe.buffer.size": limit("map_bytes", "5000000", 5_000_000),
    "log.cleaner.io.buffer.load.factor": limit("load_factor", "0.5", 0.5),
    "log.cleaner.io.buffer.size": limit("buffer_bytes", "2000000", 1_000_000),
    "log.cleaner.io.max.bytes.per.second": limit("bytes_per_second", "3000000", 3_000_000.0),
    "log.cleaner.threads": cleaner_threads,
    "max.connections": max_connections,
    "max.connections.per.ip": max_connections_per_ip,
    "max.connections.per.ip.overrides": max_connections_per_ip_overrides,
    "producer.id.expiration.ms": producer_id_expiration_ms,
    "replica.alter.log.dirs.io.max.bytes.per.second": alter_log_dirs_rate,
    "transaction.partition.verification.enable": transaction_partition_verification,
}
