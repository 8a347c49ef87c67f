"""Where `mainstem consume` begins in each partition: beginning, end, an offset, the last N, or a time.

Everything is resolved to concrete positions before the first fetch; nothing here reads a message.
"""

from __future__ import annotations

from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, TopicPartition

from mainstem.cli.client import REQUEST_TIMEOUT_S
from mainstem.cli.errors import CommandError
from mainstem.cli.times import parse_time_ms


class Start(NamedTuple):
    """The starting point as asked for; at most one field is set, none means the end."""

    beginning: bool = False
    offset: int | None = None
    time_ms: int | None = None


def parse_start(
    *, beginning: bool, latest: bool, offset: int | None, from_time: str | None, now_ms: int
) -> Start:
    """The starting point of these options, which exclude each other."""
    if sum((beginning, latest, offset is not None, from_time is not None)) > 1:
        raise CommandError(
            "there are several places to start from",
            "give one of --from-beginning, --latest, --offset and --from-time",
            exit_code=2,
        )
    time_ms = parse_time_ms(from_time, now_ms) if from_time is not None else None
    return Start(beginning, offset, time_ms)


def starting_positions(
    consumer: Consumer, topic: str, partitions: list[int], start: Start
) -> list[TopicPartition]:
    """The position of each partition; raises KafkaException."""
    if start.time_ms is not None:
        asked = [TopicPartition(topic, partition, start.time_ms) for partition in partitions]
        return consumer.offsets_for_times(asked, timeout=REQUEST_TIMEOUT_S)
    if start.offset is not None and start.offset < 0:
        return [_from_end(consumer, topic, partition, -start.offset) for partition in partitions]
    offset = OFFSET_BEGINNING if start.beginning else OFFSET_END
    if start.offset is not None:
        offset = start.offset
    return [TopicPartition(topic, partition, offset) for partition in partitions]


def _from_end(consumer: Consumer, topic: str, partition: int, count: int) -> TopicPartition:
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=REQUEST_TIMEOUT_S)
    return TopicPartition(topic, partition, max(low, high - count))
