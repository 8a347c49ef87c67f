"""Does a topic hold messages with keys? Asked before its partitions grow, because hashing then changes.

It samples the newest messages of each partition; it never reads a topic through.
"""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, TopicPartition

from mainstem.cli.client import CONNECT_TIMEOUT_S, END_WAIT_MS, consumer_client

SAMPLE_PER_PARTITION = 50
IDLE_TIMEOUT_S = 2.0


def has_keys(bootstrap: str, topic: str, partitions: int) -> bool:
    """True when one of the newest messages has a key; False too when they cannot be read."""
    consumer = consumer_client(bootstrap, {"enable.partition.eof": True, "fetch.wait.max.ms": END_WAIT_MS})
    try:
        starts = _sample_starts(consumer, topic, partitions)
        if not starts:
            return False
        consumer.assign(starts)
        return _any_key(consumer, open_partitions=len(starts))
    except KafkaException:
        return False
    finally:
        consumer.close()


def _sample_starts(consumer: Consumer, topic: str, partitions: int) -> list[TopicPartition]:
    starts = []
    for partition in range(partitions):
        low, high = consumer.get_watermark_offsets(
            TopicPartition(topic, partition), timeout=CONNECT_TIMEOUT_S
        )
        if high > low:
            starts.append(TopicPartition(topic, partition, max(low, high - SAMPLE_PER_PARTITION)))
    return starts


def _any_key(consumer: Consumer, open_partitions: int) -> bool:
    while open_partitions:
        message = consumer.poll(IDLE_TIMEOUT_S)
        if message is None:
            return False
        if message.error() is not None:
            open_partitions -= 1
        elif message.key() is not None:
            return True
    return False
