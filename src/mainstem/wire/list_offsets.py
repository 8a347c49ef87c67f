"""ListOffsets: the offset of a timestamp, or of the log's start or end, asked of each partition's leader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from mainstem.protocol.apis.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from mainstem.protocol.resources import TopicPartition
from mainstem.wire.brokers import Brokers
from mainstem.wire.connection import Connection
from mainstem.wire.errors import check, name_of
from mainstem.wire.leaders import at_leaders

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
_CONSUMER = -1


def list_offsets(
    brokers: Brokers, at: Mapping[TopicPartition, int], isolation: int = 0
) -> dict[TopicPartition, int]:
    """The offset that each partition has at a timestamp in ms, or LATEST, EARLIEST or MAX_TIMESTAMP. It is -1
    where the partition holds nothing at or after the timestamp.
    """

    def request_of(_: Connection, part: dict[TopicPartition, int]) -> tuple[Any, None]:
        topics: dict[str, list[ListOffsetsPartition]] = defaultdict(list)
        for (name, number), timestamp in part.items():
            epoch = brokers.leader((name, number)).epoch
            topics[name].append(ListOffsetsPartition(number, epoch, timestamp))
        return (
            ListOffsetsRequest(
                replica_id=_CONSUMER,
                isolation_level=isolation,
                topics=[ListOffsetsTopic(name, partitions) for name, partitions in topics.items()],
                timeout_ms=brokers.options.request_timeout_ms,
            ),
            None,
        )

    answers = at_leaders(brokers, at, request_of, _results, "look up an offset of")
    for partition, answer in answers.items():
        check(answer.error_code, f"look up an offset of {name_of(partition)}")
    return {partition: answer.offset for partition, answer in answers.items()}


def _results(
    answer: ListOffsetsResponse, _: Mapping[TopicPartition, int]
) -> dict[TopicPartition, tuple[int, ListOffsetsPartitionResponse]]:
    return {
        (topic.name, part.partition_index): (part.error_code, part)
        for topic in answer.topics
        for part in topic.partitions
    }
