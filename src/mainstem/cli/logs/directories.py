"""Where the partitions of a cluster lie and how large they are: DescribeLogDirs of every broker."""

from __future__ import annotations

from typing import NamedTuple

from mainstem.protocol.apis.k35_describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.wire import Cluster, Connection
from mainstem.wire.errors import check


class Directory(NamedTuple):
    """A log directory of a broker; sizes are -1 where the broker does not tell them."""

    broker: int
    path: str
    problem: str | None
    total_bytes: int
    usable_bytes: int


class Replica(NamedTuple):
    """A partition in a directory; `is_future` while it is on its way there. None is what was not told."""

    topic: str
    partition: int
    broker: int
    directory: str
    size: int
    offset_lag: int
    is_future: bool
    segments: int | None
    oldest_segment_ms: int | None
    clean_bytes: int | None
    cleanable_bytes: int | None
    uncleanable: str | None
    # Why there is no log.
    offline: str | None

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.partition


def describe_logs(
    cluster: Cluster, partitions: list[TopicPartition] | None = None
) -> tuple[list[Directory], list[Replica]]:
    """All directories, and what is in them of these partitions; of all when none are given."""
    topics: dict[str, DescribableLogDirTopic] = {}
    for topic, index in partitions or ():
        topics.setdefault(topic, DescribableLogDirTopic(topic)).partitions.append(index)
    request = DescribeLogDirsRequest(
        topics=None if partitions is None else list(topics.values()), include_log_state=True
    )
    directories: list[Directory] = []

    def ask(broker: int, connection: Connection) -> list[Replica]:
        response = connection.call(request)
        check(response.error_code, f"describe the log directories of broker {broker}")
        found: list[Replica] = []
        for result in response.results:
            problem = ErrorCode(result.error_code).name if result.error_code else None
            directories.append(
                Directory(broker, result.log_dir, problem, result.total_bytes, result.usable_bytes)
            )
            for described in result.topics:
                found += [
                    _replica(described.name, broker, result.log_dir, part) for part in described.partitions
                ]
        return found

    replicas = cluster.at_each_broker(ask)
    return directories, sorted(replicas, key=lambda part: (part.topic, part.partition, part.broker))


def _replica(topic: str, broker: int, directory: str, part: DescribeLogDirsPartition) -> Replica:
    return Replica(
        topic,
        part.partition_index,
        broker,
        directory,
        part.partition_size,
        part.offset_lag,
        part.is_future_key,
        _told(part.segment_count),
        _told(part.oldest_segment_timestamp),
        _told(part.clean_bytes),
        _told(part.cleanable_bytes),
        part.uncleanable,
        part.offline,
    )


def _told(number: int) -> int | None:
    return None if number < 0 else number
