"""`mainstem topics describe` with the flags by which kafka-topics finds partitions that are not well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mainstem.cli.clusters.partition_health import PartitionHealth, partition_health
from mainstem.cli.output.rendering import print_json, print_table
from mainstem.wire import Cluster, TopicMetadata


class Kinds(NamedTuple):
    """Which partitions are asked for; one that is of any of these kinds is shown."""

    under_replicated: bool
    under_min_isr: bool
    at_min_isr: bool
    unavailable: bool

    def include(self, part: PartitionHealth) -> bool:
        return (
            (self.under_replicated and part.is_under_replicated)
            or (self.under_min_isr and part.is_under_min_isr)
            or (self.at_min_isr and part.is_at_min_isr)
            or (self.unavailable and part.is_unavailable)
        )


def show(cluster: Cluster, topics: Sequence[TopicMetadata], kinds: Kinds, *, as_json: bool) -> None:
    """Print them; nothing where there are none, as kafka-topics does."""
    found = [part for part in partition_health(cluster, topics) if kinds.include(part)]
    if as_json:
        print_json([part._asdict() for part in found])
    elif found:
        rows = [
            (
                part.topic,
                part.partition,
                part.leader if part.leader >= 0 else "none",
                ",".join(map(str, part.replicas)),
                ",".join(map(str, part.isr)),
                part.min_isr,
            )
            for part in found
        ]
        print_table(("topic", "partition", "leader", "replicas", "isr", "min isr"), rows)
