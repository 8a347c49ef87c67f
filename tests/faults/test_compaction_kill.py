"""A broker that compacts is killed in the middle of it, again and again: nothing acknowledged is lost, no
record stands twice, and compaction goes on where it was.
"""

import time
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from mainstem.storage.files.checkpoints import CLEANER_OFFSETS, read_offsets
from mainstem.storage.files.real_files import RealFiles
from mainstem.testing import Broker
from tests.support.target import Target

_SETTINGS = {
    "log.cleaner.backoff.ms": 1,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "log.cleaner.io.max.bytes.per.second": 20_000_000,  # so that a pass is met in the middle
    "log.segment.delete.delay.ms": 50,
    "log.flush.offset.checkpoint.interval.ms": 50,
    "log.initial.task.delay.ms": 50,
}
_CONFIGS = {"cleanup.policy": "compact", "internal.segment.bytes": "100000"}
_KEYS = 500
_SECONDS_MAX = 200


class KeyedWriter:
    """Writes growing numbers under a few keys, and knows which were acknowledged."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._number = 0
        self.acknowledged: dict[bytes, int] = {}
        self.written: dict[bytes, int] = {}

    def write(self, servers: str, topic: str, seconds: float) -> None:
        """For about so long; what is not acknowledged then may or may not be there."""
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 2, "enable.idempotence": True})
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for _ in range(100):
                self._number += 1
                key = b"key %d" % self._random.randrange(_KEYS)
                self.written[key] = self._number
                value = b"%d %s" % (self._number, b"x" * self._random.randrange(100))
                producer.produce(topic, value, key, partition=0, on_delivery=self._delivered)
            producer.poll(0.005)
        producer.purge()
        producer.flush(5)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        key, value = message.key(), message.value()
        if error is None and key is not None and value is not None:
            number = int(value.split()[0])
            self.acknowledged[key] = max(number, self.acknowledged.get(key, 0))

    def check(self, servers: str, topic: str) -> int:
        """Read all; returns the number of records."""
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "check", "enable.partition.eof": True})
        consumer.assign([TopicPartition(topic, 0, 0)])
        latest: dict[bytes, int] = {}
        before = -1
        count = 0
        while (message := consumer.poll(30)) is not None and message.error() is None:
            key, value, offset = message.key(), message.value(), message.offset()
            assert key is not None
            assert value is not None
            assert offset is not None
            assert offset > before
            number = int(value.split()[0])
            assert number > latest.get(key, 0), "an old record behind a newer one"
            latest[key], before = number, offset
            count += 1
        consumer.close()
        for key, number in self.acknowledged.items():
            assert number <= latest.get(key, 0) <= self.written[key], key
        return count


def kill_often(folder: Path, kills: int, seed: int) -> int:
    """Returns the last offset up to which the topic was clean, having checked it after every kill."""
    random, writer = Random(seed), KeyedWriter(seed)
    with Broker(_SETTINGS, data_dir=folder) as broker:
        topic = Target("mainstem", broker.bootstrap_servers, folder).create_topic(configs=_CONFIGS)
        _await_first_pass(writer, broker, topic)
        clean = 0
        for _ in range(kills):
            writer.write(broker.bootstrap_servers, topic, random.uniform(0.2, 1.5))
            broker.kill()
            broker.start()
            writer.check(broker.bootstrap_servers, topic)
            cleaned = read_offsets(RealFiles(), folder / CLEANER_OFFSETS).get((topic, 0), 0)
            assert cleaned >= clean
            clean = cleaned
        assert "is left as it is" not in broker.log
        assert "Traceback" not in broker.log
    return clean


def _await_first_pass(writer: KeyedWriter, broker: Broker, topic: str) -> None:
    """The first process of a machine compiles its kernels, which takes its time."""
    deadline = time.monotonic() + _SECONDS_MAX
    while (topic, 0) not in read_offsets(RealFiles(), broker.data_dir / CLEANER_OFFSETS):
        assert time.monotonic() < deadline, "nothing was cleaned"
        writer.write(broker.bootstrap_servers, topic, 0.3)


@pytest.mark.timeout(300)
def test_a_broker_that_compacts_may_be_killed_at_any_moment(tmp_path: Path) -> None:
    assert kill_often(tmp_path / "data", kills=5, seed=1) > 0


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_broker_that_compacts_is_killed_a_hundred_times(tmp_path: Path) -> None:
    assert kill_often(tmp_path / "data", kills=100, seed=100) > 0
