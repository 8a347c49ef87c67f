"""How the copies of each partition are: in sync, missing, too few. The rules are those of Kafka's tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mainstem.wire import Cluster, TopicMetadata

_MIN_ISR = "min.insync.replicas"


class PartitionHealth(NamedTuple):
    """One partition. `leader` is -1 while nobody leads it."""

    topic: str
    partition: int
    leader: int
    replicas: list[int]
    isr: list[int]
    min_isr: int

    @property
    def is_unavailable(self) -> bool:
        return self.leader < 0

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)

    @property
    def is_under_min_isr(self) -> bool:
        return self.is_unavailable or len(self.isr) < self.min_isr

    @property
    def is_at_min_isr(self) -> bool:
        return len(self.isr) == self.min_isr

    @property
    def refuses_acks_all(self) -> bool:
        """Brokers ask for no more copies than a partition has."""
        return self.is_unavailable or len(self.isr) < min(self.min_isr, len(self.replicas))

    @property
    def missing(self) -> list[int]:
        """The nodes whose copies are not in sync."""
        return [node for node in self.replicas if node not in self.isr]


def partition_health(cluster: Cluster, topics: Sequence[TopicMetadata]) -> list[PartitionHealth]:
    """All partitions of these topics."""
    found = cluster.describe_topics_configs([topic.name for topic in topics], [_MIN_ISR])
    needed = {name: int(settings[0].value or 1) for name, settings in found.items() if settings}
    return [
        PartitionHealth(
            topic.name, number, part.leader, list(part.replicas), list(part.isr), needed.get(topic.name, 1)
        )
        for topic in topics
        for number, part in topic.partitions.items()
    ]
