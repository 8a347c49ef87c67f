"""A controller and brokers in the test's own loop: real nodes, real sockets, real disks."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mainstem.broker.broker_role import BrokerRole
from mainstem.broker.logs.partition import Partition
from mainstem.protocol.apis.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.replication.leader_state import LeaderState
from tests.broker.harness import Client, Topic, eventually
from tests.broker.quorum.controllers import Controllers

CONTROLLER = 100
BROKERS = (1, 2, 3)


class Cluster(Controllers):
    """Brokers 1 to 3, each of which may go and come back, and a controller that stays."""

    def __init__(self, folder: Path, **settings: str) -> None:
        super().__init__(folder, [CONTROLLER], observers=BROKERS, settings=settings)

    def settings_of(self, node_id: int) -> dict[str, str]:
        settings = super().settings_of(node_id)
        if node_id == CONTROLLER:
            return settings
        return settings | {
            "process.roles": "broker",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[node_id]}",
            "broker.heartbeat.interval.ms": "100",
            "broker.rack": f"rack-{node_id}",
        }

    async def start_all(self) -> None:
        await self.start(CONTROLLER)
        await self.start(*BROKERS)

    async def die(self, node_id: int) -> None:
        """Its process ends at once."""
        await self.nodes.pop(node_id).stop(clean=False)

    def broker(self, node_id: int) -> BrokerRole:
        return self.nodes[node_id].broker

    @property
    def brokers(self) -> list[int]:
        return [node_id for node_id in self.nodes if node_id != CONTROLLER]

    @contextmanager
    def stalled(self, node_id: int) -> Iterator[None]:
        """It follows nobody for a while, and is there otherwise."""
        replication = self.broker(node_id).replicas._replication
        assert replication is not None
        for fetcher in replication._fetchers.values():
            fetcher.found_at(None)
        yield
        replication.brokers_changed()

    # ---- topics

    async def create(self, name: str, replicas: int = 3, partitions: int = 1, **configs: str) -> Topic:
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name, partitions, replicas,
                    configs=[
                        CreatableTopicConfig(name.replace("_", "."), value) for name, value in configs.items()
                    ],
                )
            ],
            timeout_ms=10_000,
        )  # fmt: skip
        answer = (await self.ask(self.brokers[0], request)).topics[0]
        assert answer.error_code == ErrorCode.NONE, answer
        await eventually(lambda: all(self._knows(node_id, name) for node_id in self.brokers), name)
        return Topic(name, answer.topic_id)

    def _knows(self, node_id: int, name: str) -> bool:
        return name in self.broker(node_id).image.topics_by_name

    def partition(self, node_id: int, topic: Topic, index: int = 0) -> Partition:
        partition = self.broker(node_id).replicas.find(topic.name, index)
        assert partition is not None
        return partition

    def leader_of(self, topic: Topic, index: int = 0) -> int | None:
        """The broker that leads it, and knows so."""
        for node_id in self.brokers:
            found = self.broker(node_id).replicas.find(topic.name, index)
            image = self.nodes[CONTROLLER].server.image.partition(topic.name, index)
            assert image is not None
            if (
                found is not None
                and isinstance(found.role, LeaderState)
                and (image.leader, image.leader_epoch) == (node_id, found.leader_epoch)
            ):
                return node_id
        return None

    async def led(self, topic: Topic, index: int = 0) -> int:
        await eventually(lambda: self.leader_of(topic, index) is not None, "a leader")
        leader = self.leader_of(topic, index)
        assert leader is not None
        return leader

    async def in_sync(self, topic: Topic, count: int = 3, index: int = 0) -> None:
        """So many are in sync, and all of those know all to be committed."""

        def are() -> bool:
            leader = self.leader_of(topic, index)
            if leader is None:
                return False
            led = self.partition(leader, topic, index)
            return (
                isinstance(led.role, LeaderState)
                and len(led.role.isr) == count
                and all(
                    self.partition(node_id, topic, index).high_watermark == led.log.log_end_offset
                    for node_id in led.role.isr
                )
            )

        await eventually(are, f"{count} replicas of {topic.name} in sync")

    async def client(self, node_id: int) -> Client:
        return await Client.connect(self.ports[node_id])

    def values(self, node_id: int, topic: Topic, index: int = 0) -> bytes:
        """The bytes of the whole log."""
        log = self.partition(node_id, topic, index).log
        found, offset = b"", log.log_start_offset
        while offset < log.log_end_offset:
            read = log.read(offset, 1 << 20)
            assert read.records is not None
            found, offset = found + read.records.read(), read.next_offset
        return found


async def stop(cluster: Cluster) -> None:
    brokers = [node_id for node_id in cluster.nodes if node_id != CONTROLLER]
    await asyncio.gather(*(cluster.nodes.pop(node_id).stop(clean=False) for node_id in brokers))
    await cluster.stop()
