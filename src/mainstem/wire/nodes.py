"""The nodes of a cluster, and what the controller does with them: descriptions, elections, unregistering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mainstem.protocol.apis.k43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from mainstem.protocol.apis.k57_update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from mainstem.protocol.apis.k60_describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from mainstem.protocol.apis.k64_unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition, by_topic
from mainstem.wire.connection import Connection
from mainstem.wire.errors import KafkaRefusal, check, name_of

# Codes of ElectLeaders' kinds, and of UpdateFeatures'.
PREFERRED, UNCLEAN = 0, 1
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_UPDATE_TIMEOUT_MS = 60_000
_DESCRIBE_CLUSTER = 60
_WITH_FENCED = 2


class BrokerNode(NamedTuple):
    """A broker that has registered; fenced ones are not told of by old clusters."""

    node_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


class DescribedCluster(NamedTuple):
    """The cluster id, and its brokers in the order of their ids."""

    cluster_id: str
    brokers: list[BrokerNode]


def describe_cluster(connection: Connection) -> DescribedCluster:
    version = connection.version_of(_DESCRIBE_CLUSTER)
    request = DescribeClusterRequest(include_fenced_brokers=version is not None and version >= _WITH_FENCED)
    answer: DescribeClusterResponse = connection.call(request)
    check(answer.error_code, "describe the cluster", answer.error_message)
    brokers = [
        BrokerNode(node.broker_id, node.host, node.port, node.rack, node.is_fenced) for node in answer.brokers
    ]
    return DescribedCluster(answer.cluster_id, sorted(brokers))


def elect_leaders(
    connection: Connection, kind: int, partitions: Sequence[TopicPartition] | None, timeout_ms: int
) -> Mapping[TopicPartition, KafkaRefusal | None]:
    """Elect leaders of these partitions, or of all; why one has got none. Those that needed none are left out
    where all were asked for.
    """
    asked = (
        None
        if partitions is None
        else [TopicPartitions(topic, numbers) for topic, numbers in by_topic(partitions).items()]
    )
    answer: ElectLeadersResponse = connection.call(ElectLeadersRequest(kind, asked, timeout_ms))
    check(answer.error_code, "elect leaders")
    return {
        (topic.topic, part.partition_id): None
        if part.error_code == ErrorCode.NONE
        else KafkaRefusal(
            part.error_code,
            f"elect a leader of {name_of((topic.topic, part.partition_id))}",
            part.error_message,
        )
        for topic in answer.replica_election_results
        for part in topic.partition_result
    }


def update_features(
    connection: Connection, levels: Mapping[str, int], upgrade_type: int, *, validate_only: bool
) -> None:
    """Raise or lower the finalized levels of features, all or none."""
    request = UpdateFeaturesRequest(
        timeout_ms=_UPDATE_TIMEOUT_MS,
        feature_updates=[
            FeatureUpdateKey(name, level, upgrade_type != UPGRADE, upgrade_type)
            for name, level in levels.items()
        ],
        validate_only=validate_only,
    )
    answer: UpdateFeaturesResponse = connection.call(request)
    check(answer.error_code, "update features", answer.error_message)
    for result in answer.results:  # of old brokers, one by one
        check(result.error_code, f"update {result.feature}", result.error_message)


def unregister_broker(connection: Connection, broker_id: int) -> None:
    """Forget a broker that will not come back."""
    answer: UnregisterBrokerResponse = connection.call(UnregisterBrokerRequest(broker_id))
    check(answer.error_code, f"unregister broker {broker_id}", answer.error_message)
