"""Stock clients behind one small interface: write these messages, read that many back.

No client here joins a group. Each function opens and closes its own client: nothing leaks between tests.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer, Producer
from confluent_kafka import Message as ConfluentMessage
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPythonTopicPartition

from tests.support.target import Target

_TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Message:
    """A message as every client knows it. The offset is what the broker answered or what was read."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = 0  # the time of sending
    offset: int = field(default=-1, compare=False)


class Write(Protocol):
    """Writes to one partition and returns the messages with the offsets that the broker gave them."""

    def __call__(
        self,
        target: Target,
        topic: str,
        messages: Sequence[Message],
        codec: str = "none",
        acks: int | str = "all",
        partition: int = 0,
        **settings: Any,
    ) -> list[Message]: ...


Read = Callable[[Target, str, int], list[Message]]


def write_confluent(
    target: Target,
    topic: str,
    messages: Sequence[Message],
    codec: str = "none",
    acks: int | str = "all",
    partition: int = 0,
    **settings: Any,
) -> list[Message]:
    producer = Producer(
        {
            "bootstrap.servers": target.bootstrap_servers,
            "compression.type": codec,
            "acks": acks,
            "linger.ms": 20,
            **settings,
        }
    )
    written: list[Message] = []

    def delivered(message: Message) -> Callable[[Any, ConfluentMessage], None]:
        def note(error: Any, report: ConfluentMessage) -> None:
            assert error is None, error
            written.append(replace(message, offset=report.offset() or 0))

        return note

    for message in messages:
        producer.produce(
            topic,
            value=message.value,
            key=message.key,
            headers=list(message.headers),
            partition=partition,
            timestamp=message.timestamp_ms,
            on_delivery=delivered(message),
        )
    assert producer.flush(_TIMEOUT_SECONDS) == 0
    return written


def read_confluent(
    target: Target, topic: str, count: int, partition: int = 0, offset: int = 0
) -> list[Message]:
    settings = {
        "bootstrap.servers": target.bootstrap_servers,
        "group.id": "unused",
        "enable.auto.commit": False,
    }
    consumer = Consumer({**settings, "check.crcs": True})
    read: list[Message] = []
    try:
        consumer.assign([ConfluentTopicPartition(topic, partition, offset)])
        while len(read) < count:
            message = consumer.poll(_TIMEOUT_SECONDS)
            assert message is not None, f"{len(read)} of {count} messages arrived"
            assert message.error() is None, message.error()
            headers: Any = tuple(message.headers() or ())
            timestamp_ms = message.timestamp()[1]
            read.append(Message(message.value(), message.key(), headers, timestamp_ms, message.offset() or 0))
    finally:
        consumer.close()
    return read


def write_kafka_python(
    target: Target,
    topic: str,
    messages: Sequence[Message],
    codec: str = "none",
    acks: int | str = "all",
    partition: int = 0,
    **settings: Any,
) -> list[Message]:
    producer = KafkaProducer(
        bootstrap_servers=target.bootstrap_servers,
        compression_type=None if codec == "none" else codec,
        acks=acks,
        linger_ms=20,
        **settings,
    )
    try:
        futures = [
            producer.send(
                topic,
                value=message.value,
                key=message.key,
                headers=list(message.headers),
                partition=partition,
                timestamp_ms=message.timestamp_ms or None,
            )
            for message in messages
        ]
        producer.flush(_TIMEOUT_SECONDS)
        offsets = [future.get(_TIMEOUT_SECONDS).offset for future in futures]
    finally:
        producer.close()
    return [replace(message, offset=offset) for message, offset in zip(messages, offsets, strict=True)]


def read_kafka_python(
    target: Target, topic: str, count: int, partition: int = 0, offset: int = 0
) -> list[Message]:
    consumer = KafkaConsumer(bootstrap_servers=target.bootstrap_servers, consumer_timeout_ms=30_000)
    read: list[Message] = []
    try:
        consumer.assign([KafkaPythonTopicPartition(topic, partition)])
        consumer.seek(KafkaPythonTopicPartition(topic, partition), offset)
        while len(read) < count:
            record = next(consumer)
            read.append(_from_record(record))
    finally:
        consumer.close()
    return read


def _from_record(record: Any) -> Message:
    return Message(record.value, record.key, tuple(record.headers), record.timestamp, record.offset)


def write_aiokafka(
    target: Target,
    topic: str,
    messages: Sequence[Message],
    codec: str = "none",
    acks: int | str = "all",
    partition: int = 0,
    **settings: Any,
) -> list[Message]:
    async def write() -> list[Message]:
        producer = AIOKafkaProducer(
            bootstrap_servers=target.bootstrap_servers,
            compression_type=None if codec == "none" else codec,
            acks=acks,
            linger_ms=20,
            **settings,
        )
        await producer.start()
        try:
            futures = [
                await producer.send(
                    topic,
                    value=message.value,
                    key=message.key,
                    headers=list(message.headers),
                    partition=partition,
                    timestamp_ms=message.timestamp_ms or None,
                )
                for message in messages
            ]
            reports = await asyncio.gather(*futures)
        finally:
            await producer.stop()
        offsets = [report.offset if report is not None else -1 for report in reports]
        return [replace(message, offset=offset) for message, offset in zip(messages, offsets, strict=True)]

    return asyncio.run(write())


def read_aiokafka(
    target: Target, topic: str, count: int, partition: int = 0, offset: int = 0
) -> list[Message]:
    async def read() -> list[Message]:
        consumer = AIOKafkaConsumer(bootstrap_servers=target.bootstrap_servers, enable_auto_commit=False)
        await consumer.start()
        try:
            where = AioTopicPartition(topic, partition)
            consumer.assign([where])
            consumer.seek(where, offset)
            return [_from_record(await consumer.getone()) for _ in range(count)]
        finally:
            await consumer.stop()

    return asyncio.run(asyncio.wait_for(read(), _TIMEOUT_SECONDS))


WRITERS: dict[str, Write] = {
    "confluent-kafka": write_confluent,
    "kafka-python": write_kafka_python,
    "aiokafka": write_aiokafka,
}
READERS: dict[str, Read] = {
    "confluent-kafka": read_confluent,
    "kafka-python": read_kafka_python,
    "aiokafka": read_aiokafka,
}
