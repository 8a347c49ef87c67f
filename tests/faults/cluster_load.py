"""A producer at a steady, bounded rate that knows what was acknowledged, and what a cluster must show for it.

Every value is written once. An acknowledged one must be where it was acknowledged. One of an idempotent
producer must be there once, in the order of sending; a plain one may be there twice.
"""

import time
from collections import Counter
from threading import Event, Thread
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.group_views import until

_REQUEST_SECONDS = 30
# A node that is back is met at once, and a leader that has moved is noticed soon.
_IMPATIENT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "log_level": 0,
}


def make_topic(bootstrap_servers: str, topic: str, partitions: int, copies: int = 3) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(topic, partitions, copies)])[topic].result(_REQUEST_SECONDS)


class SteadyLoad:
    """`acknowledged` has the value at each place; `longest_silence_s` lay between two acknowledgements."""

    def __init__(
        self, bootstrap_servers: str, topic: str, partitions: int, per_second: int, *, idempotent: bool
    ) -> None:
        self._servers = bootstrap_servers
        self._topic = topic
        self._partitions = partitions
        self._pause_s = 1 / per_second
        self.idempotent = idempotent
        self.acknowledged: dict[tuple[int, int], int] = {}
        self.refused: list[str] = []
        self.longest_silence_s = 0.0
        self._last = time.monotonic()
        self._sent = 0
        self._acknowledged_with_a_later_one = 0
        self._twice: list[str] = []
        self._stop = Event()
        self._producer = Producer(
            {
                **_IMPATIENT,
                "bootstrap.servers": bootstrap_servers,
                "acks": "all",
                "enable.idempotence": idempotent,
                "linger.ms": 1,
                "message.timeout.ms": 120_000,
            }
        )
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._producer.produce(
                    self._topic,
                    b"%d" % self._sent,
                    partition=self._sent % self._partitions,
                    on_delivery=self._note,
                )
                self._sent += 1
            except BufferError:
                pass  # nothing is acknowledged for long: the queue is full
            self._producer.poll(self._pause_s)

    def _note(self, error: KafkaError | None, message: Message) -> None:
        value = int(message.value() or b"")
        if error is not None:
            self.refused.append(f"{value}: {error}")
            return
        now = time.monotonic()
        self.longest_silence_s = max(self.longest_silence_s, now - self._last)
        self._last = now
        offset = message.offset()
        if offset is None:
            # Its answer was lost, and librdkafka takes it as acknowledged because a later one was.
            self._acknowledged_with_a_later_one += 1
            return
        place = (message.partition() or 0, offset)
        if place in self.acknowledged:
            self._twice.append(f"{place} was given to {self.acknowledged[place]} and to {value}")
        self.acknowledged[place] = value

    def await_acknowledged(self, further: int) -> None:
        """Wait until so many more were."""
        goal = self._count + further
        until(lambda: self._count >= goal, lambda: f"acknowledgements: {self.refused[:3]}")

    def acknowledged_in(self) -> Counter[int]:
        """How many records of each partition were acknowledged."""
        return Counter(partition for partition, _ in list(self.acknowledged))

    @property
    def _count(self) -> int:
        return len(self.acknowledged) + self._acknowledged_with_a_later_one

    def end(self) -> None:
        """Everything that was sent is decided."""
        self._stop.set()
        self._thread.join()
        left = self._producer.flush(120)
        assert left == 0, f"{left} records are undecided"
        assert not self.refused, f"{len(self.refused)} were refused: {self.refused[:3]}"

    def problems(self) -> list[str]:
        """What the cluster shows that does not fit to what it has acknowledged."""
        found = read_topic(self._servers, self._topic, self._partitions)
        problems = list(self._twice)
        for place, value in self.acknowledged.items():
            if found.get(place) != value:
                problems.append(f"{value} was acknowledged at {place}, {found.get(place)} is there")
        if self.idempotent:
            last: dict[int, int] = {}
            for (partition, offset), value in sorted(found.items()):
                if value <= last.get(partition, -1):
                    problems.append(f"{value} at {(partition, offset)} comes after {last[partition]}")
                last[partition] = value
        missing = set(range(self._sent)) - set(found.values())
        if missing:
            problems.append(f"{len(missing)} values are nowhere, the first is {min(missing)}")
        return problems


def read_topic(bootstrap_servers: str, topic: str, partitions: int) -> dict[tuple[int, int], int]:
    """Every value of the topic by its place."""
    consumer = Consumer(
        {
            **_IMPATIENT,
            "bootstrap.servers": bootstrap_servers,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    found: dict[tuple[int, int], int] = {}
    unread: set[Any] = set(range(partitions))
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        while unread:
            message = consumer.poll(_REQUEST_SECONDS)
            assert message is not None, f"nothing comes from {unread}"
            error = message.error()
            if error is None:
                found[message.partition() or 0, message.offset() or 0] = int(message.value() or b"")
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.discard(message.partition())
    finally:
        consumer.close()
    return found
