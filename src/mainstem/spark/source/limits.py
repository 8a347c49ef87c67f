"""Where reading starts and ends, as the options say it, before any broker was asked."""

from dataclasses import dataclass
from typing import Literal

from mainstem.protocol.resources import TopicPartition


@dataclass(frozen=True)
class Earliest:
    """The first record that each partition has."""


@dataclass(frozen=True)
class Latest:
    """Behind the last record of each partition."""


@dataclass(frozen=True)
class AtOffsets:
    """An offset for each partition; -1 is the latest and -2 the earliest."""

    offsets: dict[TopicPartition, int]


NoMatch = Literal["error", "latest"]


@dataclass(frozen=True)
class AtTimestamps:
    """The first record of each partition that is not older than a timestamp in milliseconds."""

    timestamps: dict[TopicPartition, int]
    no_match: NoMatch = "error"


@dataclass(frozen=True)
class AtTimestamp:
    """The same timestamp for all partitions."""

    timestamp: int
    no_match: NoMatch = "error"


Limit = Earliest | Latest | AtOffsets | AtTimestamps | AtTimestamp
