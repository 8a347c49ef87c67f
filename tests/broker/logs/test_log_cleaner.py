"""A broker that compacts: topics of users and its own, while they are used, and a damaged one among them."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from mainstem.storage.files.checkpoints import CLEANER_OFFSETS, read_offsets
from mainstem.storage.files.real_files import RealFiles
from mainstem.testing import Broker
from tests.support.clients import Message, read_confluent, write_confluent
from tests.support.target import Target

_SETTINGS = {
    "log.cleaner.backoff.ms": 50,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "log.segment.delete.delay.ms": 100,
    "log.initial.task.delay.ms": 100,
}
_COMPACT = {"cleanup.policy": "compact", "internal.segment.bytes": "20000"}
_SECONDS_MAX = 200  # the first process of a machine compiles its kernels

pytestmark = pytest.mark.timeout(300)


def _target(broker: Broker) -> Target:
    return Target("mainstem", broker.bootstrap_servers, broker.data_dir)


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def _write(target: Target, topic: str, rounds: int, keys: int = 20) -> dict[bytes, bytes]:
    """Several segments of values for a few keys; returns the last value of each."""
    messages = [
        Message(b"value %d " % number * 10, key=b"key %d" % (number % keys))
        for number in range(rounds * keys)
    ]
    settings: dict[str, Any] = {"batch.size": 4000}
    write_confluent(target, topic, messages, **settings)
    return {message.key: message.value for message in messages}  # type: ignore[misc]


def _active(folder: Path) -> int:
    return max(int(path.stem) for path in folder.glob("*.log"))


def _await_clean(target: Target, topic: str, partition: int = 0) -> int:
    """Returns up to where it is clean, which is where the active segment begins."""
    folder = target.log_dir / f"{topic}-{partition}"

    def is_clean() -> bool:
        return read_offsets(RealFiles(), target.log_dir / CLEANER_OFFSETS).get((topic, partition)) == _active(
            folder
        )

    _await(is_clean, f"{topic} to be cleaned")
    return _active(folder)


def _set(target: Target, kind: ResourceType, name: str, setting: str, value: str) -> None:
    admin = target.admin()
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(kind, name, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


def _read(target: Target, topic: str) -> list[Message]:
    settings = {
        "bootstrap.servers": target.bootstrap_servers,
        "group.id": "any",
        "enable.partition.eof": True,
    }
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages: list[Message] = []
    while (polled := consumer.poll(30)) is not None and not polled.error():
        messages.append(Message(polled.value(), key=polled.key(), offset=polled.offset() or 0))
    consumer.close()
    return messages


def test_readers_see_the_latest_value_of_each_key_and_old_files_go(tmp_path: Path) -> None:
    with Broker(_SETTINGS, data_dir=tmp_path / "data") as broker:
        target = _target(broker)
        topic = target.create_topic(configs=_COMPACT)
        latest = _write(target, topic, 200)
        end = _await_clean(target, topic)
        messages = _read(target, topic)
        assert {message.key: message.value for message in messages} == latest
        cleaned = [message.key for message in messages if message.offset < end]
        assert len(cleaned) == len(set(cleaned)) == 20
        folder = target.log_dir / f"{topic}-0"
        _await(lambda: not list(folder.glob("*.deleted")), "the old files to be removed")
        broker.stop()
        broker.start()
        assert _read(_target(broker), topic) == messages
        assert "ERROR" not in broker.log


def test_a_topic_becomes_compacted_when_its_settings_say_so(tmp_path: Path) -> None:
    with Broker({**_SETTINGS, "log.cleaner.backoff.ms": 3_600_000}, data_dir=tmp_path / "data") as broker:
        target = _target(broker)
        topic = target.create_topic(configs={"internal.segment.bytes": "20000"})
        _write(target, topic, 100)
        _set(target, ResourceType.TOPIC, topic, "cleanup.policy", "compact")
        _set(target, ResourceType.BROKER, str(target.node_id), "log.cleaner.backoff.ms", "50")
        _await_clean(target, topic)


def test_a_log_that_cannot_be_cleaned_is_left_alone_and_the_others_are_cleaned(tmp_path: Path) -> None:
    with Broker({**_SETTINGS, "log.cleaner.enable": False}, data_dir=tmp_path / "data") as broker:
        bad, good = (_target(broker).create_topic(configs=_COMPACT) for _ in range(2))
        for topic in (bad, good):
            _write(_target(broker), topic, 100)
    segment = min((tmp_path / "data" / f"{bad}-0").glob("*.log"))
    content = bytearray(segment.read_bytes())
    content[100] ^= 0xFF
    segment.write_bytes(content)
    with Broker(_SETTINGS, data_dir=tmp_path / "data") as broker:
        _await_clean(_target(broker), good)
        _await(lambda: f"{bad}-0 is left as it is" in broker.log, "a report of the damaged log")
        assert "its checksum is wrong" in broker.log
        assert segment.read_bytes() == content


def test_reading_goes_on_while_segments_are_swapped(tmp_path: Path) -> None:
    with Broker(_SETTINGS, data_dir=tmp_path / "data") as broker:
        target = _target(broker)
        topic = target.create_topic(configs=_COMPACT)
        settings = {"bootstrap.servers": target.bootstrap_servers, "group.id": "any"}
        consumer = Consumer({**settings, "fetch.message.max.bytes": 3000, "auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition(topic, 0, 0)])
        latest: dict[bytes, bytes] = {}
        seen: dict[bytes | None, bytes | None] = {}
        offsets: list[int] = []

        def consume(count: int) -> bool:
            """Whether all has been seen now."""
            for message in consumer.consume(count, 1):
                assert message.error() is None, message.error()
                seen[message.key()] = message.value()
                offsets.append(message.offset() or 0)
            return seen == latest

        for _ in range(5):
            latest |= _write(target, topic, 60)
            consume(50)
            _await_clean(target, topic)
            consume(50)
        _await(lambda: consume(1000), "the last values")
        assert offsets == sorted(set(offsets))
        consumer.close()
        assert "ERROR" not in broker.log


def test_committed_offsets_survive_the_compaction_of_their_topic(tmp_path: Path) -> None:
    with Broker({**_SETTINGS, "offsets.topic.num.partitions": 1}, data_dir=tmp_path / "data") as broker:
        target = _target(broker)
        topic = target.create_topic()
        write_confluent(target, topic, [Message(b"value")] * 1000)
        consumer = Consumer({"bootstrap.servers": target.bootstrap_servers, "group.id": "group"})
        assert consumer.committed([TopicPartition(topic, 0)], 30)
        _set(target, ResourceType.TOPIC, "__consumer_offsets", "internal.segment.bytes", "20000")
        for offset in range(1000):
            consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        _await_clean(target, "__consumer_offsets")
        folder = target.log_dir / "__consumer_offsets-0"
        assert sum(path.stat().st_size for path in folder.glob("*.log")) < 30_000
        consumer.close()
        broker.stop()
        broker.start()
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "group"})
        (committed,) = consumer.committed([TopicPartition(topic, 0)], 30)
        assert committed.offset == 999
        consumer.close()


def test_transactions_go_on_after_the_compaction_of_their_topic(tmp_path: Path) -> None:
    with Broker(
        {**_SETTINGS, "transaction.state.log.num.partitions": 1}, data_dir=tmp_path / "data"
    ) as broker:
        target = _target(broker)
        topic = target.create_topic(configs={**_COMPACT, "internal.segment.bytes": "2000"})

        def write(numbers: range) -> None:
            settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "writer"}
            producer = Producer(settings)
            producer.init_transactions(30)
            for number in numbers:
                producer.begin_transaction()
                producer.produce(topic, b"value %d" % number, b"key %d" % (number % 3), 0)
                if number % 4 == 3:
                    producer.abort_transaction(30)
                else:
                    producer.commit_transaction(30)

        write(range(1))
        _set(target, ResourceType.TOPIC, "__transaction_state", "internal.segment.bytes", "20000")
        write(range(1, 101))
        _await_clean(target, "__transaction_state")
        broker.stop()
        broker.start()
        target = _target(broker)
        write(range(101, 161))
        _await_clean(target, topic)
        last = {b"key %d" % (n % 3): b"value %d" % n for n in range(161) if n % 4 != 3}
        read = read_confluent(target, topic, 3, offset=0)
        assert len(read) == 3
        committed = {message.key: message.value for message in _read(target, topic)}
        assert committed == last
        assert "ERROR" not in broker.log


@pytest.mark.parametrize("threads", [0, 2, 8])
def test_as_many_processes_clean_as_the_settings_say(tmp_path: Path, threads: int) -> None:
    with Broker({**_SETTINGS, "log.cleaner.threads": threads}, data_dir=tmp_path / "data") as broker:
        target = _target(broker)
        topics = [target.create_topic(configs=_COMPACT) for _ in range(3 * max(1, threads // 2))]
        for topic in topics:
            _write(target, topic, 50)
        if threads:
            for topic in topics:
                _await_clean(target, topic)
        else:
            broker.stop()
            assert not (target.log_dir / CLEANER_OFFSETS).exists()
