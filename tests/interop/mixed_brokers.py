"""Brokers of both kinds in one cluster, Mainstem's in this process and Apache Kafka's beside it: clients,
and what each has of a partition.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from mainstem.records.batch import crc_is_valid, iter_headers
from mainstem.records.record import Record, iter_records
from tests.broker.nodes import Nodes
from tests.faults.cluster_load import IMPATIENT, read_topic
from tests.support.group_views import until
from tests.support.kafka_peer import start_kafka_node
from tests.support.shared import end_guarded
from tests.wire.ports import free_ports

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
    "metadata.log.max.snapshot.interval.ms": 2_000,
    # What is compacted is so at once. Only closed segments are: internal topics do not close any here.
    "log.cleaner.backoff.ms": 200,
    "offsets.topic.segment.bytes": 104_857_600,
    "transaction.state.log.segment.bytes": 104_857_600,
}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "1000",
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

    def batches(self, node_id: int, topic: str, partition: int, end: int) -> list[bytes]:
        """What a broker that has been stopped has of a partition below an offset, which it must reach."""
        found: list[bytes] = []
        reached = 0
        for path in sorted((self.directory(node_id) / f"{topic}-{partition}").glob("*.log")):
            data = path.read_bytes()  # Apache Kafka reserves blocks behind an end that it did not close well
            for at, header in iter_headers(data):
                assert crc_is_valid(data, at), f"{path} at {at}"
                if header.base_offset < end:
                    found.append(data[at : at + header.size])
                    reached = header.base_offset + header.last_offset_delta + 1
        assert reached == end, f"{topic}-{partition} of {node_id} ends at {reached}, {end} is committed"
        return found

    def newest(self, node_id: int, topic: str, partition: int, end: int) -> dict[bytes | None, Record]:
        """The last record of each key, below an offset."""
        batches = self.batches(node_id, topic, partition, end)
        return {record.key: record for batch in batches for record in iter_records(batch)}


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
        group = Consumer(self._options | {"group.id": f"writers-of-{topic}"})
        offsets = [TopicPartition(topic, 0, 1)]
        producer.send_offsets_to_transaction(offsets, group.consumer_group_metadata(), WAIT_SECONDS)
        group.close()
        producer.commit_transaction(WAIT_SECONDS)
        producer.begin_transaction()
        for number in range(100):
            producer.produce(topic, b"aborted-%d" % number)
        producer.flush(WAIT_SECONDS)
        producer.abort_transaction(WAIT_SECONDS)
        return committed

    def partitions(self) -> list[tuple[str, int]]:
        """Of all topics, internal ones too."""
        topics = self._admin.list_topics(timeout=10).topics
        return [(name, part) for name, topic in topics.items() for part in topic.partitions]

    def ends(self) -> dict[tuple[str, int], int]:
        """The high watermark of every partition."""
        consumer = Consumer(self._options | {"group.id": "nobody", "isolation.level": "read_uncommitted"})
        try:
            ends = {}
            for topic, part in self.partitions():
                place = TopicPartition(topic, part)
                ends[topic, part] = consumer.get_watermark_offsets(place, 30, cached=False)[1]
            return ends
        finally:
            consumer.close()

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


class TransactionLoad:
    """Transactions without a pause, every third aborted; after each a group commits its number as an offset.

    Not inside of it: librdkafka waits for a group's coordinator that is gone until it is back.
    """

    PER_TRANSACTION = 6

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int) -> None:
        self._servers = bootstrap_servers
        self._topic = topic
        self._partitions = partitions
        self.committed: set[int] = set()
        self._last_offset = -1
        self._refusal: KafkaException | None = None
        self._stop = Event()
        options = IMPATIENT | {"bootstrap.servers": bootstrap_servers}
        self._producer = Producer(options | {"transactional.id": topic, "compression.type": "zstd"})
        self._group = Consumer(options | {"group.id": f"group-of-{topic}"})
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._producer.init_transactions(WAIT_SECONDS)
            number = 0
            while not self._stop.is_set():
                self._transaction(number)
                self._commit(number)
                number += 1
        except KafkaException as error:
            self._refusal = error
            self._stop.set()

    def _transaction(self, number: int) -> None:
        values = range(number * self.PER_TRANSACTION, (number + 1) * self.PER_TRANSACTION)
        self._producer.begin_transaction()
        for value in values:
            self._producer.produce(self._topic, b"%d" % value, partition=value % self._partitions)
        try:
            if number % 3 < 2:
                self._insist(self._producer.commit_transaction)
                self.committed |= set(values)
                return
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
        else:
            # librdkafka may end what has not begun for the coordinator, which refuses that.
            self._producer.flush(WAIT_SECONDS)
        self._insist(self._producer.abort_transaction)

    @staticmethod
    def _insist(step: Callable[[float], Any]) -> None:
        """What took longer than expected is asked for again."""
        while True:
            try:
                step(WAIT_SECONDS)
                return
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise

    def _commit(self, number: int) -> None:
        while True:
            try:
                self._group.commit(offsets=[TopicPartition(self._topic, 0, number + 1)], asynchronous=False)
                self._last_offset = number + 1
                return
            except KafkaException as error:
                self._refusal = error
                if self._stop.is_set():
                    raise

    def await_committed(self, further: int) -> None:
        goal = len(self.committed) + further
        until(lambda: len(self.committed) >= goal, lambda: f"{goal} in {self.committed}: {self._refusal}")

    def end(self) -> None:
        self._stop.set()
        self._thread.join()

    def problems(self) -> list[str]:
        """Whatever is not as it was answered."""
        found = Counter(read_topic(self._servers, self._topic, self._partitions).values())
        problems = [
            f"{value} was committed, and is there {found[value]} times"
            for value in self.committed
            if found[value] != 1
        ]
        problems += [f"{value} is there without a commit" for value in found.keys() - self.committed]
        (offset,) = self._group.committed([TopicPartition(self._topic, 0)], WAIT_SECONDS)
        if offset.offset != self._last_offset:
            problems.append(f"the offset is {offset.offset}, {self._last_offset} was committed")
        self._group.close()
        return problems
