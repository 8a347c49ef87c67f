"""A producer at a steady, bounded rate that knows what was acknowledged, and what a cluster must show for it.

Every value is written once. An acknowledged one must be where it was acknowledged. One of an idempotent
producer must be there once, in the order of sending; a plain one may be there twice. Of a topic with keys,
which is compacted, the last value of each key must be there; what a client had deleted must be gone, and
nothing else.
"""

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from threading import Event, Thread
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.group_views import until

_REQUEST_SECONDS = 30
_TRIMMING_PAUSE_SECONDS = 0.2
# A node that is back is met at once, and a leader that has moved is noticed soon.
IMPATIENT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "log_level": 0,
}


def make_topic(
    bootstrap_servers: str,
    topic: str,
    partitions: int,
    copies: int = 3,
    configs: Mapping[str, str] | None = None,
) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    new = NewTopic(topic, partitions, copies, config=dict(configs or {}))
    admin.create_topics([new])[topic].result(_REQUEST_SECONDS)


class SteadyLoad:
    """`acknowledged` has the value at each place; `longest_silence_s` lay between two acknowledgements.

    With `keys`, a multiple of the partitions, each value has one of so many keys, in turn. Values are filled
    up to `width` bytes, so that there is something to compress. `options` are more of the producer's.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        partitions: int,
        per_second: int,
        *,
        idempotent: bool,
        keys: int = 0,
        width: int = 1,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._servers = bootstrap_servers
        self._topic = topic
        self._partitions = partitions
        self._pause_s = 1 / per_second
        self.idempotent = idempotent
        assert keys % partitions == 0
        self._keys = keys
        self._width = width
        self.acknowledged: dict[tuple[int, int], int] = {}
        self.refused: list[str] = []
        self.longest_silence_s = 0.0
        self._last = time.monotonic()
        self._sent = 0
        self._acknowledged_with_a_later_one = 0
        self._twice: list[str] = []
        self._asked_to_trim: dict[int, int] = {}
        self._trimmed: dict[int, int] = {}
        self._stop = Event()
        self._producer = Producer(
            {
                **IMPATIENT,
                "bootstrap.servers": bootstrap_servers,
                "acks": "all",
                "enable.idempotence": idempotent,
                "linger.ms": 1,
                "message.timeout.ms": 120_000,
                **(options or {}),
            }
        )
        self._admin = AdminClient({**IMPATIENT, "bootstrap.servers": bootstrap_servers})
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._producer.produce(
                    self._topic,
                    b"%0*d" % (self._width, self._sent),
                    key=b"%d" % (self._sent % self._keys) if self._keys else None,
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
        needed = self._needed(found)
        problems = self._twice + self._wrongly_trimmed(found)
        for place, value in self.acknowledged.items():
            if found.get(place) != value and (place in found or value in needed):
                problems.append(f"{value} was acknowledged at {place}, {found.get(place)} is there")
        if self.idempotent:
            last: dict[int, int] = {}
            for (partition, offset), value in sorted(found.items()):
                if value <= last.get(partition, -1):
                    problems.append(f"{value} at {(partition, offset)} comes after {last[partition]}")
                last[partition] = value
        missing = needed - set(found.values())
        if missing:
            problems.append(f"{len(missing)} values are nowhere, the first is {min(missing)}")
        return problems

    def _needed(self, found: Mapping[tuple[int, int], int]) -> set[int]:
        """Of what was sent, what must be there: the last value of each key, what nobody had deleted."""
        needed = set(range(max(0, self._sent - self._keys) if self._keys else 0, self._sent))
        starts = _starts(found)
        for partition in self._asked_to_trim.keys() & starts.keys():
            first = found[partition, starts[partition]]
            needed.difference_update(range(partition, first, self._partitions))
        return needed

    def trim(self, partition: int) -> None:
        """Have half of what was acknowledged deleted (DeleteRecords). Refused, it may still be done."""
        offsets = [offset for part, offset in list(self.acknowledged) if part == partition]
        if not offsets:
            return
        offset = max(self._asked_to_trim.get(partition, 0), max(offsets) // 2)
        self._asked_to_trim[partition] = offset
        place = TopicPartition(self._topic, partition, offset)
        with suppress(KafkaException):
            (answer,) = self._admin.delete_records([place]).values()
            self._trimmed[partition] = answer.result(_REQUEST_SECONDS).low_watermark

    def _wrongly_trimmed(self, found: Mapping[tuple[int, int], int]) -> list[str]:
        return [
            f"{partition} starts at {start}, {self._trimmed.get(partition, 0)} was answered to a deletion, "
            f"{self._asked_to_trim.get(partition, 0)} was asked for"
            for partition, start in _starts(found).items()
            if not self._keys
            and not self._trimmed.get(partition, 0) <= start <= self._asked_to_trim.get(partition, 0)
        ]

    def await_compacted(self) -> None:
        """Wait until older values of some keys are gone."""

        def is_compacted() -> bool:
            return len(read_topic(self._servers, self._topic, self._partitions)) < self._sent

        until(is_compacted, lambda: f"{self._topic} to be compacted")


def _starts(found: Mapping[tuple[int, int], int]) -> dict[int, int]:
    """The first offset of each partition that has one."""
    return dict(sorted(found, reverse=True))


class Trimming:
    """Has a partition of a topic deleted up to somewhere, one after the other, without a pause."""

    def __init__(self, load: SteadyLoad, partitions: int) -> None:
        self._load = load
        self._partitions = partitions
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        turn = 0
        while not self._stop.wait(_TRIMMING_PAUSE_SECONDS):
            self._load.trim(turn % self._partitions)
            turn += 1

    def end(self) -> None:
        self._stop.set()
        self._thread.join()


def read_topic(bootstrap_servers: str, topic: str, partitions: int) -> dict[tuple[int, int], int]:
    """Every value of the topic by its place."""
    consumer = Consumer(
        {
            **IMPATIENT,
            "bootstrap.servers": bootstrap_servers,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",  # the start of what somebody had deleted
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
