"""What every layer names alike: a partition of a topic, and what settings belong to."""

from collections.abc import Iterable
from enum import IntEnum

TopicPartition = tuple[str, int]


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The partitions of each topic, both in their order."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return topics


class ConfigResourceType(IntEnum):
    """What a group of settings belongs to, with the codes of the config APIs and of ConfigRecord."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
