"""What every layer names alike: a partition of a topic, and what settings belong to."""

from enum import IntEnum

TopicPartition = tuple[str, int]


class ConfigResourceType(IntEnum):
    """What a group of settings belongs to, with the codes of the config APIs and of ConfigRecord."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
