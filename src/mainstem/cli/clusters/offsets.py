"""Offsets of partitions, as far as there is somebody to ask."""

from __future__ import annotations

from collections.abc import Iterable

from mainstem.protocol.resources import TopicPartition
from mainstem.wire import Cluster


def find_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition], at: int
) -> dict[TopicPartition, int]:
    """The offset of each partition at EARLIEST, LATEST or a time in ms (-1 if there is none); partitions that
    do not exist, or that nobody leads, are left out."""
    wanted = list(partitions)
    topics = cluster.metadata({topic for topic, _ in wanted}) if wanted else {}
    led = {
        (topic, number): at
        for topic, number in wanted
        if (found := topics[topic].partitions.get(number)) is not None and found.leader >= 0
    }
    return cluster.list_offsets(led) if led else {}
