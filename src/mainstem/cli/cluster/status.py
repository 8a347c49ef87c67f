"""What `mainstem cluster status` knows: nodes with their disks, the metadata quorum, and the partitions that
are not well. What does not answer is a part of that, and never its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from mainstem import __version__
from mainstem.cli.clusters.each_broker import ask_each, hasty
from mainstem.cli.clusters.partition_health import PartitionHealth, partition_health
from mainstem.protocol.apis.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from mainstem.protocol.apis.k35_describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from mainstem.protocol.uuids import uuid_to_text
from mainstem.wire import (
    BrokerNode,
    ClientOptions,
    Cluster,
    Connection,
    ConnectionLost,
    KafkaRefusal,
    NotServed,
    QuorumReplica,
    QuorumState,
    address_text,
)

METADATA_VERSION = "metadata.version"
UP, FENCED, LAGGING, SILENT, NO_ANSWER = "up", "fenced", "lagging", "silent", "does not answer"
NOBODY = -1


class Node(NamedTuple):
    """A node with all that is known of it; `address` is that for clients, None for a controller alone."""

    node_id: int
    roles: tuple[str, ...]
    address: str | None
    rack: str | None
    # `up`, `fenced` (the controller does not hear it), `does not answer` (us), `lagging` or `silent` (of the
    # quorum).
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
    # A node whose disk was replaced may vote with the one that is gone, and observe with the new one.
    directory_id: str = ""
    state: str = UP


class LogDirectory(NamedTuple):
    """A log directory of a broker; sizes are -1 where the broker does not tell them."""

    node_id: int
    path: str
    is_lost: bool
    total_bytes: int
    usable_bytes: int


class ClusterStatus(NamedTuple):
    cluster_id: str
    # The finalized level of each feature.
    features: Mapping[str, int]
    nodes: list[Node]
    # Of the quorum; NOBODY where it could not be learned, and then there is nothing to tell of epoch, high
    # watermark and followers. `quorum_refusal` is why the broker did not want to tell.
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
    directories: Sequence[LogDirectory] = ()
    quorum_refusal: str | None = None


# A voter or observer asks several times a second; who has not for so long is not there.
_SILENT_MS = 5_000
# So far behind, in records of metadata, that it is worth a word.
_LAG_MAX = 1_000
# A broker that knows no leader goes on looking for one as long as it is waited for.
_QUORUM_PATIENCE_MS = 5_000
_NO_QUORUM = QuorumState(NOBODY, -1, -1, [], [], {})


def collect(cluster: Cluster) -> ClusterStatus:
    """Ask the brokers."""
    described = cluster.describe_cluster()
    partitions = partition_health(cluster, list(cluster.metadata().values()))
    addresses = {node.node_id: (node.host, node.port) for node in described.brokers if not node.is_fenced}
    answers = ask_each(cluster.options, addresses, _ask_broker)
    reachable = tuple(addresses[node_id] for node_id in answers) or cluster.options.bootstrap_servers
    quorum, refusal = _quorum(replace(cluster.options, bootstrap_servers=reachable))
    followers = _followers(quorum)
    refusing = [part for part in partitions if part.refuses_acks_all]
    return ClusterStatus(
        described.cluster_id,
        {name: level for answer in answers.values() for name, level in answer.finalized.items()},
        _nodes(described.brokers, quorum, followers, answers),
        quorum.leader_id,
        quorum.leader_epoch,
        quorum.high_watermark,
        followers,
        len(partitions),
        [part for part in refusing if part.is_unavailable],
        [part for part in refusing if not part.is_unavailable],
        [part for part in partitions if part.is_under_replicated and not part.refuses_acks_all],
        sum(part.leader >= 0 and part.leader != part.replicas[0] for part in partitions),
        [directory for answer in answers.values() for directory in answer.directories],
        refusal,
    )


class _Answer(NamedTuple):
    """What a broker says of itself: the finalized levels, what it supports, and its disks."""

    finalized: Mapping[str, int]
    metadata_version: int | None
    directories: list[LogDirectory]


def _ask_broker(node_id: int, connection: Connection) -> _Answer:
    served: ApiVersionsResponse = connection.call(ApiVersionsRequest("mainstem", __version__))
    levels = {key.name: key.max_version for key in served.supported_features}
    return _Answer(connection.features, levels.get(METADATA_VERSION), _directories(node_id, connection))


def _directories(node_id: int, connection: Connection) -> list[LogDirectory]:
    """None where this broker does not tell, or not now: it has answered before, so it is there."""
    try:
        answer: DescribeLogDirsResponse = connection.call(DescribeLogDirsRequest(topics=[]))
    except (ConnectionLost, NotServed):
        return []
    return [
        LogDirectory(node_id, it.log_dir, bool(it.error_code), it.total_bytes, it.usable_bytes)
        for it in answer.results
    ]


def _quorum(options: ClientOptions) -> tuple[QuorumState, str | None]:
    """The quorum, or why the broker does not tell of it; neither where it knows no leader to ask."""
    try:
        with Cluster(hasty(options, _QUORUM_PATIENCE_MS)) as cluster:
            return cluster.describe_quorum(), None
    except ConnectionLost:
        return _NO_QUORUM, None
    except NotServed as error:
        return _NO_QUORUM, str(error)
    except KafkaRefusal as error:
        return _NO_QUORUM, None if error.code.retriable else error.message


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
    state = UP
    if replica.node_id != quorum.leader_id:
        if silent_ms is None or silent_ms > _SILENT_MS:
            state = SILENT
        elif lag > _LAG_MAX:
            state = LAGGING
    directory_id = uuid_to_text(replica.directory_id)
    return Follower(
        replica.node_id, role, replica.log_end_offset, lag, behind_ms, silent_ms, directory_id, state
    )


def _nodes(
    brokers: Sequence[BrokerNode],
    quorum: QuorumState,
    followers: Sequence[Follower],
    answers: Mapping[int, _Answer],
) -> list[Node]:
    registered = {broker.node_id: broker for broker in brokers}
    voters = {voter.node_id for voter in quorum.voters}
    nodes = []
    for node_id in sorted({*registered, *voters}):
        broker = registered.get(node_id)
        roles = (*(("broker",) if broker else ()), *(("controller",) if node_id in voters else ()))
        address = None if broker is None else address_text(broker.host, broker.port)
        state = _state(node_id, followers)
        if broker is not None and broker.is_fenced:
            state = FENCED
        elif broker is not None and node_id not in answers:
            state = NO_ANSWER
        level = answers[node_id].metadata_version if node_id in answers else None
        nodes.append(Node(node_id, roles, address, broker and broker.rack, state, level))
    return nodes


def _state(node_id: int, followers: Sequence[Follower]) -> str:
    """The best that is said of any of its directories."""
    states = {follower.state for follower in followers if follower.node_id == node_id}
    return next((state for state in (UP, LAGGING, SILENT) if state in states), UP)
