"""What `mainstem cluster status` knows: nodes, the metadata quorum, and the partitions that are not well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mainstem import __version__
from mainstem.cli.clusters.partition_health import PartitionHealth, partition_health
from mainstem.protocol.apis.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from mainstem.wire import (
    BrokerNode,
    Cluster,
    Connection,
    ConnectionLost,
    QuorumReplica,
    QuorumState,
    address_text,
)

METADATA_VERSION = "metadata.version"


class Node(NamedTuple):
    """A node with all that is known of it; `address` is that for clients, None for a controller alone."""

    node_id: int
    roles: tuple[str, ...]
    address: str | None
    rack: str | None
    # `up`, `fenced` (the controller does not hear it), `lagging` or `silent` (of the quorum).
    state: str
    # The newest metadata.version that it supports.
    metadata_version: int | None


class Follower(NamedTuple):
    """How far a voter or observer is behind the quorum's leader."""

    node_id: int
    role: str
    log_end_offset: int
    lag: int
    # Since it had all that the leader had, and since it last asked; None where nobody can tell.
    behind_ms: int | None
    silent_ms: int | None


class ClusterStatus(NamedTuple):
    cluster_id: str
    # The finalized level of each feature.
    features: Mapping[str, int]
    nodes: list[Node]
    leader: int
    epoch: int
    high_watermark: int
    followers: list[Follower]
    partitions: int
    # Those that are not well.
    offline: list[PartitionHealth]
    under_min_isr: list[PartitionHealth]
    under_replicated: list[PartitionHealth]
    # Those that another replica leads than the first.
    elsewhere_led: int


# A voter or observer asks several times a second; who has not for so long is not there.
_SILENT_MS = 5_000
# So far behind, in records of metadata, that it is worth a word.
_LAG_MAX = 1_000


def collect(cluster: Cluster) -> ClusterStatus:
    """Ask the brokers."""
    described = cluster.describe_cluster()
    quorum = cluster.describe_quorum()
    partitions = partition_health(cluster, list(cluster.metadata().values()))
    features, supported = _features(
        cluster, [node.node_id for node in described.brokers if not node.is_fenced]
    )
    followers = _followers(quorum)
    refusing = [part for part in partitions if part.refuses_acks_all]
    return ClusterStatus(
        described.cluster_id,
        features,
        _nodes(described.brokers, quorum, followers, supported),
        quorum.leader_id,
        quorum.leader_epoch,
        quorum.high_watermark,
        followers,
        len(partitions),
        [part for part in refusing if part.is_unavailable],
        [part for part in refusing if not part.is_unavailable],
        [part for part in partitions if part.is_under_replicated and not part.refuses_acks_all],
        sum(part.leader >= 0 and part.leader != part.replicas[0] for part in partitions),
    )


def as_json(status: ClusterStatus) -> dict[str, Any]:
    """The facts as `--json` prints them."""
    return status._asdict() | {
        "features": dict(status.features),
        "nodes": [node._asdict() for node in status.nodes],
        "followers": [follower._asdict() for follower in status.followers],
        "offline": _json_of(status.offline),
        "under_min_isr": _json_of(status.under_min_isr),
        "under_replicated": _json_of(status.under_replicated),
    }


def _json_of(partitions: Sequence[PartitionHealth]) -> list[dict[str, Any]]:
    return [part._asdict() for part in partitions]


def _features(cluster: Cluster, node_ids: Sequence[int]) -> tuple[dict[str, int], dict[int, int]]:
    """The finalized levels, and up to which metadata.version each of these nodes can go."""
    finalized: dict[str, int] = {}
    supported: dict[int, int] = {}

    def ask(connection: Connection) -> ApiVersionsResponse:
        finalized.update(connection.features)
        answer: ApiVersionsResponse = connection.call(ApiVersionsRequest("mainstem", __version__))
        return answer

    for node_id in node_ids:
        try:
            levels = {
                key.name: key.max_version for key in cluster.ask_broker(node_id, ask).supported_features
            }
        except ConnectionLost:  # it went while we looked: its state says so in a moment
            continue
        if METADATA_VERSION in levels:
            supported[node_id] = levels[METADATA_VERSION]
    return finalized, supported


def _followers(quorum: QuorumState) -> list[Follower]:
    leaders = [voter for voter in quorum.voters if voter.node_id == quorum.leader_id]
    now_ms = max([voter.last_caught_up_ms for voter in leaders], default=-1)
    return [
        *(_follower(replica, "voter", quorum, now_ms) for replica in quorum.voters),
        *(_follower(replica, "observer", quorum, now_ms) for replica in quorum.observers),
    ]


def _follower(replica: QuorumReplica, role: str, quorum: QuorumState, now_ms: int) -> Follower:
    lag = max(0, quorum.log_end_offset - replica.log_end_offset)
    behind_ms, silent_ms = (
        max(0, now_ms - then_ms) if min(now_ms, then_ms) >= 0 else None
        for then_ms in (replica.last_caught_up_ms, replica.last_fetch_ms)
    )
    return Follower(replica.node_id, role, replica.log_end_offset, lag, behind_ms, silent_ms)


def _nodes(
    brokers: Sequence[BrokerNode],
    quorum: QuorumState,
    followers: Sequence[Follower],
    supported: Mapping[int, int],
) -> list[Node]:
    registered = {broker.node_id: broker for broker in brokers}
    voters = {voter.node_id for voter in quorum.voters}
    states = {follower.node_id: _state(follower, quorum.leader_id) for follower in followers}
    nodes = []
    for node_id in sorted({*registered, *voters}):
        broker = registered.get(node_id)
        roles = (*(("broker",) if broker else ()), *(("controller",) if node_id in voters else ()))
        address = None if broker is None else address_text(broker.host, broker.port)
        state = "fenced" if broker is not None and broker.is_fenced else states.get(node_id, "up")
        nodes.append(Node(node_id, roles, address, broker and broker.rack, state, supported.get(node_id)))
    return nodes


def _state(follower: Follower, leader_id: int) -> str:
    if follower.node_id == leader_id:
        return "up"
    if follower.silent_ms is None or follower.silent_ms > _SILENT_MS:
        return "silent"
    return "lagging" if follower.lag > _LAG_MAX else "up"
