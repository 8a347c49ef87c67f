"""Producers at their limits: large messages, refused ones, idempotence, many partitions."""

import time
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from kafka import KafkaProducer
from kafka.errors import MessageSizeTooLargeError

from tests.support.clients import READERS, WRITERS, Message, read_confluent, write_confluent
from tests.support.target import Target

_NOW_MS = int(time.time() * 1000)


@pytest.mark.parametrize("client", WRITERS)
def test_idempotent_producers(target: Target, topic: str, client: str) -> None:
    setting = {"enable.idempotence": True} if client == "confluent-kafka" else {"enable_idempotence": True}
    for run in range(2):  # the second producer has an id of its own
        messages = [Message(b"%d" % number, timestamp_ms=_NOW_MS) for number in range(500)]
        written = WRITERS[client](target, topic, messages, codec="gzip", **setting)
        assert [message.offset for message in written] == list(range(run * 500, run * 500 + 500))
    assert [message.value for message in read_confluent(target, topic, 1000)] == [
        b"%d" % (number % 500) for number in range(1000)
    ]


def test_large_messages(target: Target) -> None:
    topic = target.create_topic(configs={"max.message.bytes": "20000000"})
    messages = [
        Message(bytes([number]) * size, timestamp_ms=_NOW_MS) for number, size in enumerate((1, 9_000_000, 5))
    ]
    settings: dict[str, Any] = {"message.max.bytes": 10_000_000}
    write_confluent(target, topic, messages, **settings)
    for name, read in READERS.items():
        assert read(target, topic, 3) == messages, name


def test_a_message_over_the_topics_limit_is_refused(target: Target) -> None:
    topic = target.create_topic(configs={"max.message.bytes": "1000"})
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": target.bootstrap_servers})
    for size in (500, 2000):
        producer.produce(topic, b"x" * size, on_delivery=lambda error, _: errors.append(error))
        producer.flush(30)
    assert errors[0] is None
    assert errors[1] is not None
    assert errors[1].code() == KafkaError.MSG_SIZE_TOO_LARGE

    other = KafkaProducer(bootstrap_servers=target.bootstrap_servers)
    with pytest.raises(MessageSizeTooLargeError):
        other.send(topic, b"x" * 2000).get(30)
    other.close()
    assert [message.value for message in read_confluent(target, topic, 1)] == [b"x" * 500]


def test_keys_spread_over_partitions_and_stay_in_order(target: Target) -> None:
    topic = target.create_topic(partitions=4)
    producer = Producer({"bootstrap.servers": target.bootstrap_servers, "partitioner": "murmur2"})
    placed: dict[Any, set[Any]] = {}
    for number in range(400):
        key = b"key %d" % (number % 20)
        producer.produce(
            topic,
            b"%d" % number,
            key,
            on_delivery=lambda error, message: placed.setdefault(message.key(), set()).add(
                message.partition()
            ),
        )
    assert producer.flush(30) == 0
    assert all(len(partitions) == 1 for partitions in placed.values())
    counts = [sum(partitions == {number} for partitions in placed.values()) * 20 for number in range(4)]
    assert sum(counts) == 400
    for partition, count in enumerate(counts):
        values = [int(message.value or b"") for message in read_confluent(target, topic, count, partition)]
        for remainder in range(20):
            mine = [value for value in values if value % 20 == remainder]
            assert mine == sorted(mine)
