"""Sends the records of dead letters again, each once.

How far it has got is an offset of a group of its own, committed in the same transaction as the records:
whatever is interrupted, every dead letter is sent again exactly once. Works on any Kafka cluster with
transactions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from mainstem.cli.clusters.existing import existing_topic
from mainstem.cli.clusters.librdkafka import END_WAIT_MS, consumer_client, kafka_errors, producer_client
from mainstem.cli.clusters.target import Target
from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import print_table
from mainstem.cli.streams import say
from mainstem.spark.pipeline.dead_letters.headers import DeadLetter, read_dead_letter, replayed_headers

RECORDS_PER_TRANSACTION = 1000
READ_TIMEOUT_S = 15.0


class Replayer:
    """Replays the dead letters of one pipeline."""

    def __init__(
        self,
        target: Target,
        topic: str,
        pipeline: str,
        group: str,
        record_bytes_max: int,
    ) -> None:
        self._target = target
        self._topic = topic
        self._pipeline = pipeline
        self._group = group
        self._record_bytes_max = record_bytes_max
        self._positions: dict[int, int] = {}
        self._partitions: dict[str, int] = {}

    def run(self, *, to: str | None, limit: int | None, dry_run: bool, again: bool) -> None:
        with self._target.connect() as cluster:
            partitions = existing_topic(cluster, self._topic).partitions
        consumer = consumer_client(
            self._target,
            {
                "group.id": self._group,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": END_WAIT_MS,
            },
        )
        try:
            with kafka_errors(self._target.bootstrap, f"read {self._topic}"):
                self._assign(consumer, partitions, again=again)
                if dry_run:
                    self._show(consumer, to, limit)
                else:
                    self._send(consumer, to, limit)
        finally:
            consumer.close()

    def _assign(self, consumer: Consumer, partitions: Iterable[int], *, again: bool) -> None:
        """From where the group is to the end of now."""
        wanted = [TopicPartition(self._topic, partition) for partition in partitions]
        known = (
            {} if again else {part.partition: part.offset for part in consumer.committed(wanted, timeout=15)}
        )
        self._ends: dict[int, int] = {}
        for part in wanted:
            low, high = consumer.get_watermark_offsets(part, timeout=15)
            start = max(low, known.get(part.partition, -1))
            if start < high:
                self._positions[part.partition] = start
                self._ends[part.partition] = high
        consumer.assign([TopicPartition(self._topic, part, at) for part, at in self._positions.items()])

    def _dead_letters(self, consumer: Consumer, limit: int | None) -> Any:
        """(message, dead letter) pairs of this pipeline up to the ends; positions advance with each."""
        waiting = set(self._positions)
        given = 0
        while waiting and (limit is None or given < limit):
            message: Any = consumer.poll(READ_TIMEOUT_S)
            if message is None:
                raise CommandError(f"the broker sends nothing more of {self._topic}", "try again later")
            partition = message.partition()
            if message.error() is not None:
                if message.error().name() != "_PARTITION_EOF":
                    raise KafkaException(message.error())
                waiting.discard(partition)
                continue
            if partition not in waiting or message.offset() >= self._ends[partition]:
                waiting.discard(partition)
                continue
            dead_letter = read_dead_letter(message.headers() or [])
            self._positions[partition] = message.offset() + 1
            if message.offset() + 1 >= self._ends[partition]:
                waiting.discard(partition)
            if dead_letter is None or dead_letter.pipeline != self._pipeline:
                continue
            given += 1
            yield message, dead_letter

    def _show(self, consumer: Consumer, to: str | None, limit: int | None) -> None:
        found = [
            (each.topic, each.partition, each.offset, each.step, each.at, each.reason)
            for _, each in self._dead_letters(consumer, limit)
        ]
        if not found:
            say("no dead letters are left to send again")
            return
        print_table(("topic", "partition", "offset", "step", "at", "why"), found)
        say(f"{len(found)} would be sent to {to or 'the topics that they came from'}")

    def _send(self, consumer: Consumer, to: str | None, limit: int | None) -> None:
        producer = producer_client(
            self._target,
            {
                "transactional.id": f"{self._group}.{self._topic}",
                "linger.ms": 20,
                "message.max.bytes": self._record_bytes_max,
            },
        )
        producer.init_transactions(30)
        sent: Counter[str] = Counter()
        in_transaction = 0
        refused: list[str] = []
        try:
            for message, dead_letter in self._dead_letters(consumer, limit):
                if not in_transaction:
                    producer.begin_transaction()
                self._produce(producer, message, dead_letter, to or dead_letter.topic, refused)
                sent[to or dead_letter.topic] += 1
                in_transaction += 1
                if in_transaction == RECORDS_PER_TRANSACTION:
                    self._commit(producer, consumer, refused)
                    in_transaction = 0
            if in_transaction:
                self._commit(producer, consumer, refused)
                in_transaction = 0
        finally:
            if in_transaction:
                producer.abort_transaction(30)
        for topic, count in sorted(sent.items()):
            print(f"sent {count} again to {topic}")
        if not sent:
            say("no dead letters are left to send again")

    def _produce(
        self, producer: Producer, message: Message, dead_letter: DeadLetter, topic: str, refused: list[str]
    ) -> None:
        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                refused.append(error.str())

        arguments: dict[str, Any] = {"headers": replayed_headers(dead_letter), "on_delivery": delivered}
        if dead_letter.timestamp_ms >= 0:
            arguments["timestamp"] = dead_letter.timestamp_ms
        if topic == dead_letter.topic and dead_letter.partition < self._partition_count(producer, topic):
            arguments["partition"] = dead_letter.partition
        producer.produce(topic, message.value(), message.key(), **arguments)
        producer.poll(0)

    def _partition_count(self, producer: Producer, topic: str) -> int:
        if topic not in self._partitions:
            found = producer.list_topics(topic, timeout=15).topics[topic]
            self._partitions[topic] = len(found.partitions)
        return self._partitions[topic]

    def _commit(self, producer: Producer, consumer: Consumer, refused: list[str]) -> None:
        offsets = [TopicPartition(self._topic, part, at) for part, at in self._positions.items()]
        producer.flush(60)
        if refused:
            producer.abort_transaction(30)
            raise CommandError(f"a record was refused: {refused[0]}", "nothing of this transaction is sent")
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
        producer.commit_transaction(60)
