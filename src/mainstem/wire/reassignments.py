"""Moving partitions to other brokers (KIP-455): starting, cancelling and listing moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mainstem.protocol.apis.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from mainstem.protocol.apis.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition, by_topic
from mainstem.wire.connection import Connection
from mainstem.wire.errors import KafkaRefusal, check, name_of

_TIMEOUT_MS = 60_000


class Reassignment(NamedTuple):
    """A move under way."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]


def alter_reassignments(
    connection: Connection, wanted: Mapping[TopicPartition, Sequence[int] | None]
) -> dict[TopicPartition, KafkaRefusal | None]:
    """Move each partition to these brokers, or with None leave it where it was; why one is not moved."""
    topics = [
        ReassignableTopic(
            topic,
            [ReassignablePartition(number, _ids(wanted[topic, number])) for number in numbers],
        )
        for topic, numbers in by_topic(wanted).items()
    ]
    request = AlterPartitionReassignmentsRequest(timeout_ms=_TIMEOUT_MS, topics=topics)
    answer: AlterPartitionReassignmentsResponse = connection.call(request)
    check(answer.error_code, "move partitions", answer.error_message)
    return {
        (topic.name, part.partition_index): None
        if part.error_code == ErrorCode.NONE
        else KafkaRefusal(
            part.error_code, f"move {name_of((topic.name, part.partition_index))}", part.error_message
        )
        for topic in answer.responses
        for part in topic.partitions
    }


def list_reassignments(connection: Connection) -> dict[TopicPartition, Reassignment]:
    """All moves that are under way."""
    request = ListPartitionReassignmentsRequest(timeout_ms=_TIMEOUT_MS, topics=None)
    answer: ListPartitionReassignmentsResponse = connection.call(request)
    check(answer.error_code, "list the moves of partitions", answer.error_message)
    return {
        (topic.name, part.partition_index): Reassignment(
            part.replicas, part.adding_replicas, part.removing_replicas
        )
        for topic in answer.topics
        for part in topic.partitions
    }


def _ids(replicas: Sequence[int] | None) -> list[int] | None:
    return None if replicas is None else list(replicas)
