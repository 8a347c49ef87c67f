"""Brokers of both kinds in one cluster, under a controller of either: each follows the other, takes over when
it is gone, and has the same bytes in the end.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.broker.nodes import Nodes
from tests.support.kafka_peer import start_kafka_node
from tests.support.shared import end_guarded
from tests.wire.ports import free_ports

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]

CONTROLLER, MAINSTEM, KAFKA = 1, 2, 3
PARTITIONS = 4
SETTINGS = {
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "offsets.topic.replication.factor": 2,
    "transaction.state.log.replication.factor": 2,
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    "broker.session.timeout.ms": 4_000,
    "broker.heartbeat.interval.ms": 500,
}
WAIT_SECONDS = 60


class Mixed(Nodes):
    """Nodes of Apache Kafka run beside the test's process."""

    def __init__(self, folder: Path, foreign: set[int]) -> None:
        roles = {CONTROLLER: "controller", MAINSTEM: "broker", KAFKA: "broker"}
        super().__init__(folder, roles, SETTINGS)
        self.foreign = foreign
        self._client_ports = dict(zip((MAINSTEM, KAFKA), free_ports(2), strict=True))

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port(MAINSTEM)},127.0.0.1:{self.port(KAFKA)}"

    async def begin(self, node_id: int) -> None:
        if node_id not in self.foreign:
            await super().begin(node_id)
            return
        self.format(node_id)
        settings = self.settings(node_id) | {"controller.listener.names": "CONTROLLER"}
        properties = self.folder / f"kafka-{node_id}" / "server.properties"
        properties.parent.mkdir(exist_ok=True)
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        start_kafka_node(self._name(node_id), properties)

    async def kill(self, node_id: int, *, kindly: bool = False) -> None:
        if node_id in self.foreign:
            await asyncio.to_thread(end_guarded, self._name(node_id), kindly=kindly)
        else:
            await super().kill(node_id)

    def _name(self, node_id: int) -> str:
        return f"{self.folder.parent.name}-{node_id}"

    def logs(self, topic: str) -> list[tuple[str, str]]:
        """Of each partition, what the two brokers have of it."""
        return [
            (self._digest(MAINSTEM, f"{topic}-{index}"), self._digest(KAFKA, f"{topic}-{index}"))
            for index in range(PARTITIONS)
        ]

    def _digest(self, node_id: int, partition: str) -> str:
        segments = sorted((self.directory(node_id) / partition).glob("*.log"))
        # Apache Kafka reserves blocks behind the end of a log that it did not close well.
        return hashlib.sha256(b"".join(path.read_bytes() for path in segments).rstrip(b"\0")).hexdigest()


class Clients:
    """Blocking clients, in threads of their own: the nodes have the test's."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._options: dict[str, Any] = {"bootstrap.servers": bootstrap_servers, "log_level": 0}
        self._admin = AdminClient(self._options)

    def create(self, server: str, topic: str) -> None:
        """By the broker that is asked, whoever decides."""
        admin = AdminClient({"bootstrap.servers": server, "log_level": 0})
        (made,) = admin.create_topics([NewTopic(topic, PARTITIONS, 2)]).values()
        made.result(30)
        (again,) = admin.create_topics([NewTopic(topic, PARTITIONS, 2)]).values()
        with pytest.raises(KafkaException) as refused:
            again.result(30)
        assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
        entry = ConfigEntry("retention.ms", "86400000", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        (altered,) = admin.incremental_alter_configs([resource]).values()
        altered.result(30)

    def replicas(self, topic: str) -> list[tuple[int, list[int]]]:
        """The leader and the replicas in sync of each partition."""
        found = self._admin.list_topics(topic, timeout=10).topics[topic].partitions
        return [(part.leader, sorted(part.isrs)) for _, part in sorted(found.items())]

    def brokers(self) -> set[int]:
        return set(self._admin.list_topics(timeout=10).brokers)

    def produce(self, topic: str, mark: str, count: int) -> set[bytes]:
        values = {f"{mark}-{number}".encode() for number in range(count)}
        failed: list[Any] = []
        producer = Producer(self._options | {"enable.idempotence": True, "compression.type": "lz4"})
        for value in values:
            producer.produce(
                topic, value, on_delivery=lambda error, _: failed.extend([error] if error else [])
            )
        assert producer.flush(WAIT_SECONDS) == 0
        assert failed == []
        return values

    def produce_in_transactions(self, topic: str) -> set[bytes]:
        """One that is committed and one that is aborted."""
        producer = Producer(self._options | {"transactional.id": f"writer-of-{topic}"})
        producer.init_transactions(WAIT_SECONDS)
        committed = {b"committed-%d" % number for number in range(100)}
        producer.begin_transaction()
        for value in committed:
            producer.produce(topic, value)
        producer.commit_transaction(WAIT_SECONDS)
        producer.begin_transaction()
        for number in range(100):
            producer.produce(topic, b"aborted-%d" % number)
        producer.flush(WAIT_SECONDS)
        producer.abort_transaction(WAIT_SECONDS)
        return committed

    def read(self, topic: str) -> list[bytes]:
        """All that is committed, by a group."""
        options = {"group.id": f"readers-of-{topic}", "auto.offset.reset": "earliest"}
        consumer = Consumer(self._options | options | {"enable.partition.eof": True})
        consumer.subscribe([topic])
        found: list[bytes] = []
        at_end: set[int] = set()
        while len(at_end) < PARTITIONS:
            message = consumer.poll(WAIT_SECONDS)
            assert message is not None, "it goes on"
            error = message.error()
            if error is None:
                found.append(bytes(message.value() or b""))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                at_end.add(message.partition() or 0)
        consumer.close()
        return found


@pytest.fixture(params=["mainstem-controls", "kafka-controls"])
def mixed(request: pytest.FixtureRequest, runner: asyncio.Runner, tmp_path: Path) -> Iterator[Mixed]:
    foreign = {KAFKA} if request.param == "mainstem-controls" else {CONTROLLER, KAFKA}
    nodes = Mixed(tmp_path / "cluster", foreign)
    yield nodes
    runner.run(nodes.stop())
    for node_id in foreign:
        with suppress(FileNotFoundError):  # it is ended already
            runner.run(nodes.kill(node_id))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            with suppress(KafkaException):
                if await asyncio.to_thread(condition):
                    return
            await asyncio.sleep(0.1)


def led_by_both(clients: Clients, topic: str) -> bool:
    """And both are in sync."""
    replicas = clients.replicas(topic)
    in_sync = all(isr == [MAINSTEM, KAFKA] for _, isr in replicas)
    return in_sync and {leader for leader, _ in replicas} == {MAINSTEM, KAFKA}


def in_sync(clients: Clients, topic: str) -> bool:
    return all(isr == [MAINSTEM, KAFKA] for _, isr in clients.replicas(topic))


def led_by(clients: Clients, topic: str, node_id: int) -> bool:
    return all(leader == node_id for leader, _ in clients.replicas(topic))


async def test_each_follows_the_other_and_takes_over(mixed: Mixed) -> None:
    await mixed.start()
    clients = Clients(mixed.bootstrap_servers)
    await until(lambda: clients.brokers() == {MAINSTEM, KAFKA})
    written: dict[str, set[bytes]] = {}
    for topic, server in (("by-mainstem", MAINSTEM), ("by-kafka", KAFKA)):
        await asyncio.to_thread(clients.create, f"127.0.0.1:{mixed.port(server)}", topic)
        await until(partial(led_by_both, clients, topic))
        written[topic] = await asyncio.to_thread(clients.produce, topic, "first", 1000)
        written[topic] |= await asyncio.to_thread(clients.produce_in_transactions, topic)
    for gone, left in ((MAINSTEM, KAFKA), (KAFKA, MAINSTEM)):
        await mixed.kill(gone)
        for topic in written:
            await until(partial(led_by, clients, topic, left))
            written[topic] |= await asyncio.to_thread(clients.produce, topic, f"without-{gone}", 300)
        await mixed.begin(gone)
        for topic in written:
            await until(partial(in_sync, clients, topic))
    for topic, values in written.items():
        found = await asyncio.to_thread(clients.read, topic)
        assert len(found) == len(values)
        assert set(found) == values
    await mixed.stop(MAINSTEM)
    await mixed.kill(KAFKA, kindly=True)
    for topic in written:
        assert all(ours == theirs for ours, theirs in mixed.logs(topic)), topic
