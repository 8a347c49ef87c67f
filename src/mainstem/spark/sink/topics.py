"""The topics that are written to: found by their names, created where brokers create topics by themselves.

What a topic's configuration limits is asked for, because rows come in batches that are larger than Java's.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from mainstem.protocol.apis.k03_metadata import MetadataRequest, MetadataRequestTopic
from mainstem.protocol.apis.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import ConfigResourceType
from mainstem.spark.sink.errors import SinkError
from mainstem.wire import Cluster, TopicMetadata, WireError

_PAUSE_S = 0.1
# How long a topic may be unknown: one that was just created is known everywhere a moment later.
_UNKNOWN_MS = 5_000
_TRANSIENT = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)


class WritableTopic(NamedTuple):
    """What one has to know of a topic to write to it. Partitions that nobody leads now are not in `led`."""

    name: str
    partitions: int
    led: list[int]
    batch_bytes_max: int | None  # None where the broker does not tell


def find_topic(cluster: Cluster, topic: str, timeout_ms: int) -> WritableTopic:
    """SinkError when it does not exist and no broker creates it."""
    metadata = _await_topic(cluster, topic, timeout_ms)
    led = [number for number, partition in metadata.partitions.items() if partition.leader >= 0]
    return WritableTopic(topic, len(metadata.partitions), led, _batch_bytes_max(cluster, metadata))


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


def _batch_bytes_max(cluster: Cluster, metadata: TopicMetadata) -> int | None:
    name = "max.message.bytes"
    resource = DescribeConfigsResource(ConfigResourceType.TOPIC, metadata.name, [name])
    leaders = [partition.leader for partition in metadata.partitions.values() if partition.leader >= 0]
    try:
        answer = cluster.call(leaders[0], DescribeConfigsRequest(resources=[resource])) if leaders else None
    except WireError:
        return None
    values = [
        entry.value
        for result in (answer.results if answer else ())
        for entry in result.configs
        if entry.name == name
    ]
    return int(values[0]) if values and values[0] else None


def _ask_for(cluster: Cluster, topic: str) -> None:
    """Ask as a producer does; a broker with auto.create.topics.enable then creates the topic."""
    leaders = (
        partition.leader
        for known in cluster.metadata().values()
        for partition in known.partitions.values()
        if partition.leader >= 0
    )
    node_id = next(leaders, None)
    if node_id is None:
        # A cluster without a topic; every one can tell who coordinates a group.
        node_id = cluster.coordinator(topic, "group")
    cluster.call(
        node_id, MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True)
    )
