"""Topics, partitions and their leaders as a Metadata answer tells them."""

from __future__ import annotations

from dataclasses import dataclass, field

from mainstem.protocol.apis.k03_metadata import MetadataResponse, MetadataResponseTopic
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.uuids import ZERO_UUID
from mainstem.wire.errors import Address, error_code

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """Who leads a partition: `leader` is -1 while nobody does, the epoch -1 where the broker tells none.

    `replicas` are the brokers that keep a copy, `isr` those whose copy is in sync.
    """

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic; `error` says why there is nothing to tell of it. The id is all zero on old brokers."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    topic_id: bytes = ZERO_UUID
    is_internal: bool = False
    partitions: dict[int, PartitionMetadata] = field(default_factory=dict)


def topics_of(answer: MetadataResponse) -> dict[str, TopicMetadata]:
    return {topic.name: _topic(topic) for topic in answer.topics if topic.name is not None}


def addresses_of(answer: MetadataResponse) -> dict[int, Address]:
    return {node.node_id: (node.host, node.port) for node in answer.brokers}


def _topic(topic: MetadataResponseTopic) -> TopicMetadata:
    partitions = {
        part.partition_index: PartitionMetadata(
            part.leader_id, part.leader_epoch, tuple(part.replica_nodes), tuple(part.isr_nodes)
        )
        for part in sorted(topic.partitions, key=lambda part: part.partition_index)
    }
    return TopicMetadata(
        topic.name or "", error_code(topic.error_code), topic.topic_id, topic.is_internal, partitions
    )
