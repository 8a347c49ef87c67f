"""The topics that are written to: found by their names, created where brokers create topics by themselves.

What a topic's configuration limits is asked for, because rows come in batches that are larger than Java's.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from mainstem.protocol.apis.k03_metadata import MetadataRequest, MetadataRequestTopic
from mainstem.protocol.errors import ErrorCode
from mainstem.spark.sink.errors import SinkError
from mainstem.wire import Cluster, TopicMetadata, WireError, topic_resource

_PAUSE_S = 0.1
# How long a topic may be unknown: one that was just created is known everywhere a moment later.
_UNKNOWN_MS = 5_000
_TRANSIENT = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)


class WritableTopic(NamedTuple):
    """What one has to know of a topic to write to it. Partitions that nobody leads now are not in `led`."""

    partitions: int
    led: list[int]
    batch_bytes_max: int | None  # None where the broker does not tell


def find_topic(cluster: Cluster, topic: str, timeout_ms: int) -> WritableTopic:
    """SinkError when it does not exist and no broker creates it."""
    metadata = _await_topic(cluster, topic, timeout_ms)
    led = [number for number, partition in metadata.partitions.items() if partition.leader >= 0]
    return WritableTopic(len(metadata.partitions), led, _batch_bytes_max(cluster, topic))


def _await_topic(cluster: Cluster, topic: str, timeout_ms: int) -> TopicMetadata:
    """Look at a topic until it is there; SinkError when that does not come."""
    deadline = time.monotonic() + min(timeout_ms, _UNKNOWN_MS) / 1000
    is_asked_for = False
    while True:
        metadata = cluster.metadata([topic])[topic]
        if metadata.error == ErrorCode.NONE and metadata.partitions:
            return metadata
        if metadata.error not in _TRANSIENT or time.monotonic() + _PAUSE_S > deadline:
            break
        if metadata.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not is_asked_for:
            _ask_for(cluster, topic)
            is_asked_for = True
            continue
        time.sleep(_PAUSE_S)
    if metadata.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        servers = ",".join(f"{host}:{port}" for host, port in cluster.options.bootstrap_servers)
        raise SinkError(
            f"the topic {topic} does not exist at {servers}: create it "
            f"(mainstem topics create {topic}), or correct the option or column topic"
        )
    problem = f"{metadata.error.name}: {metadata.error.message}"
    raise SinkError(f"the topic {topic} cannot be written to: {problem}")


def _batch_bytes_max(cluster: Cluster, topic: str) -> int | None:
    try:
        found = cluster.describe_configs(topic_resource(topic), ["max.message.bytes"])
    except WireError:
        return None
    return int(found[0].value) if found and found[0].value else None


def _ask_for(cluster: Cluster, topic: str) -> None:
    """Ask as a producer does; a broker with auto.create.topics.enable then creates the topic."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True)
    cluster.at_broker(next(iter(cluster.brokers())), lambda connection: connection.call(request))
