"""Raft's messages as they stand on the wire: one topic with one partition in each. Made and taken apart here.

Whatever comes from another node may be nonsense: taking apart gives None then.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mainstem.cluster.raft.quorum_state import NOBODY
from mainstem.cluster.raft.voters import Endpoint, ReplicaKey, Voter
from mainstem.cluster.snapshot import SnapshotId
from mainstem.cluster.topic_names import CLUSTER_METADATA_TOPIC
from mainstem.protocol.apis import k01_fetch, k52_vote, k53_begin_quorum_epoch, k54_end_quorum_epoch
from mainstem.protocol.apis import k59_fetch_snapshot as k59
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.uuids import ONE_UUID, ZERO_UUID

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica

# The id that Kafka gives the metadata topic, and its only partition.
METADATA_TOPIC_ID = ONE_UUID
PARTITION = 0


class _Named(Protocol):
    """A topic of most of the messages."""

    topic_name: str
    partitions: list[Any]


def only_partition(topics: Sequence[_Named]) -> Any:
    """The one partition, when the message is about the metadata log and nothing else."""
    if len(topics) != 1 or topics[0].topic_name != CLUSTER_METADATA_TOPIC:
        return None
    return _only(topics[0].partitions, "partition_index")


def only_fetched(topics: Sequence[k01_fetch.FetchTopic]) -> k01_fetch.FetchPartition | None:
    """The same of a Fetch, which names the topic by name or by id."""
    if len(topics) != 1 or (
        topics[0].topic != CLUSTER_METADATA_TOPIC and topics[0].topic_id != METADATA_TOPIC_ID
    ):
        return None
    found: k01_fetch.FetchPartition | None = _only(topics[0].partitions, "partition")
    return found


def only_answered(topics: Sequence[k01_fetch.FetchableTopicResponse]) -> k01_fetch.PartitionData | None:
    if len(topics) != 1 or (
        topics[0].topic != CLUSTER_METADATA_TOPIC and topics[0].topic_id != METADATA_TOPIC_ID
    ):
        return None
    found: k01_fetch.PartitionData | None = _only(topics[0].partitions, "partition_index")
    return found


def only_snapshot(topics: Sequence[k59.TopicSnapshot]) -> k59.PartitionSnapshot | None:
    """The same of a FetchSnapshot."""
    if len(topics) != 1 or topics[0].name != CLUSTER_METADATA_TOPIC:
        return None
    found: k59.PartitionSnapshot | None = _only(topics[0].partitions, "partition")
    return found


def only_chunk(topics: Sequence[k59.ResponseTopicSnapshot]) -> k59.ResponsePartitionSnapshot | None:
    if len(topics) != 1 or topics[0].name != CLUSTER_METADATA_TOPIC:
        return None
    found: k59.ResponsePartitionSnapshot | None = _only(topics[0].partitions, "index")
    return found


def _only(partitions: Sequence[Any], index: str) -> Any:
    if len(partitions) != 1 or getattr(partitions[0], index) != PARTITION:
        return None
    return partitions[0]


# ---- requests


def vote_request(replica: "Replica", voter: Voter, pre_vote: bool) -> k52_vote.VoteRequest:
    partition = k52_vote.PartitionData(
        PARTITION,
        replica.epoch,
        replica.key.node_id,
        replica.key.directory_id,
        voter.key.directory_id,
        replica.last_epoch,
        replica.end_offset,
        pre_vote,
    )
    topic = k52_vote.TopicData(CLUSTER_METADATA_TOPIC, [partition])
    return k52_vote.VoteRequest(replica.identity.cluster_id, voter.key.node_id, [topic])


def begin_quorum_epoch_request(
    replica: "Replica", voter: Voter
) -> k53_begin_quorum_epoch.BeginQuorumEpochRequest:
    partition = k53_begin_quorum_epoch.PartitionData(
        PARTITION, voter.key.directory_id, replica.key.node_id, replica.epoch
    )
    return k53_begin_quorum_epoch.BeginQuorumEpochRequest(
        replica.identity.cluster_id,
        voter.key.node_id,
        [k53_begin_quorum_epoch.TopicData(CLUSTER_METADATA_TOPIC, [partition])],
        [
            k53_begin_quorum_epoch.LeaderEndpoint(each.listener, each.host, each.port)
            for each in replica.identity.endpoints
        ],
    )


def end_quorum_epoch_request(
    replica: "Replica", successors: Iterable[ReplicaKey]
) -> k54_end_quorum_epoch.EndQuorumEpochRequest:
    successors = list(successors)
    partition = k54_end_quorum_epoch.PartitionData(
        PARTITION,
        replica.key.node_id,
        replica.epoch,
        [each.node_id for each in successors],
        [k54_end_quorum_epoch.ReplicaInfo(each.node_id, each.directory_id) for each in successors],
    )
    return k54_end_quorum_epoch.EndQuorumEpochRequest(
        replica.identity.cluster_id,
        [k54_end_quorum_epoch.TopicData(CLUSTER_METADATA_TOPIC, [partition])],
        [
            k54_end_quorum_epoch.LeaderEndpoint(each.listener, each.host, each.port)
            for each in replica.identity.endpoints
        ],
    )


def fetch_request(replica: "Replica") -> k01_fetch.FetchRequest:
    settings = replica.settings
    partition = k01_fetch.FetchPartition(
        partition=PARTITION,
        current_leader_epoch=replica.epoch,
        fetch_offset=replica.end_offset,
        last_fetched_epoch=replica.last_epoch,
        log_start_offset=-1,
        partition_max_bytes=settings.fetch_max_bytes,
        replica_directory_id=replica.key.directory_id,
        high_watermark=-1 if replica.high_watermark is None else replica.high_watermark,
    )
    return k01_fetch.FetchRequest(
        cluster_id=replica.identity.cluster_id,
        replica_id=replica.key.node_id,
        replica_state=k01_fetch.ReplicaState(replica.key.node_id, -1),
        max_wait_ms=settings.fetch_max_wait_ms,
        min_bytes=0,
        max_bytes=settings.fetch_max_bytes,
        topics=[k01_fetch.FetchTopic(CLUSTER_METADATA_TOPIC, METADATA_TOPIC_ID, [partition])],
    )


def fetch_snapshot_request(
    replica: "Replica", snapshot_id: SnapshotId, position: int, max_bytes: int
) -> k59.FetchSnapshotRequest:
    partition = k59.PartitionSnapshot(
        PARTITION,
        replica.epoch,
        k59.SnapshotId(snapshot_id.offset, snapshot_id.epoch),
        position,
        replica.key.directory_id,
    )
    topic = k59.TopicSnapshot(CLUSTER_METADATA_TOPIC, [partition])
    return k59.FetchSnapshotRequest(replica.identity.cluster_id, replica.key.node_id, max_bytes, [topic])


# ---- responses


def vote_response(
    replica: "Replica", listener: str, error: ErrorCode, granted: bool = False
) -> k52_vote.VoteResponse:
    partition = k52_vote.ResponsePartitionData(PARTITION, error, replica.leader_id, replica.epoch, granted)
    return k52_vote.VoteResponse(
        ErrorCode.NONE,
        [k52_vote.ResponseTopicData(CLUSTER_METADATA_TOPIC, [partition])],
        [k52_vote.NodeEndpoint(*place) for place in leader_place(replica, listener)],
    )


def begin_quorum_epoch_response(
    replica: "Replica", listener: str, error: ErrorCode
) -> k53_begin_quorum_epoch.BeginQuorumEpochResponse:
    api = k53_begin_quorum_epoch
    partition = api.ResponsePartitionData(PARTITION, error, replica.leader_id, replica.epoch)
    return api.BeginQuorumEpochResponse(
        ErrorCode.NONE,
        [api.ResponseTopicData(CLUSTER_METADATA_TOPIC, [partition])],
        [api.NodeEndpoint(*place) for place in leader_place(replica, listener)],
    )


def end_quorum_epoch_response(
    replica: "Replica", listener: str, error: ErrorCode
) -> k54_end_quorum_epoch.EndQuorumEpochResponse:
    api = k54_end_quorum_epoch
    partition = api.ResponsePartitionData(PARTITION, error, replica.leader_id, replica.epoch)
    return api.EndQuorumEpochResponse(
        ErrorCode.NONE,
        [api.ResponseTopicData(CLUSTER_METADATA_TOPIC, [partition])],
        [api.NodeEndpoint(*place) for place in leader_place(replica, listener)],
    )


def fetch_response(
    replica: "Replica", listener: str, partition: k01_fetch.PartitionData
) -> k01_fetch.FetchResponse:
    """The partition with what every answer says: who leads."""
    partition.partition_index = PARTITION
    partition.current_leader = k01_fetch.LeaderIdAndEpoch(replica.leader_id, replica.epoch)
    topic = k01_fetch.FetchableTopicResponse(CLUSTER_METADATA_TOPIC, METADATA_TOPIC_ID, [partition])
    return k01_fetch.FetchResponse(
        responses=[topic],
        node_endpoints=[
            k01_fetch.NodeEndpoint(node_id, host, port)
            for node_id, host, port in leader_place(replica, listener)
        ],
    )


def fetch_snapshot_response(
    replica: "Replica", listener: str, partition: k59.ResponsePartitionSnapshot
) -> k59.FetchSnapshotResponse:
    partition.index = PARTITION
    partition.current_leader = k59.LeaderIdAndEpoch(replica.leader_id, replica.epoch)
    return k59.FetchSnapshotResponse(
        topics=[k59.ResponseTopicSnapshot(CLUSTER_METADATA_TOPIC, [partition])],
        node_endpoints=[k59.NodeEndpoint(*place) for place in leader_place(replica, listener)],
    )


def leader_place(replica: "Replica", listener: str) -> list[tuple[int, str, int]]:
    """Where the leader is reached, for the endpoints of an answer."""
    endpoint = replica.endpoint_of_leader(listener)
    if replica.leader_id == NOBODY or endpoint is None:
        return []
    return [(replica.leader_id, endpoint.host, endpoint.port)]


class _Place(Protocol):
    node_id: int
    host: str
    port: int


def endpoints_said(replica: "Replica", leader_id: int, places: Iterable[_Place]) -> tuple[Endpoint, ...]:
    """What an answer says of the leader's address, which is that of the listener this node dials."""
    return tuple(
        Endpoint(replica.identity.listener, place.host, place.port)
        for place in places
        if place.node_id == leader_id and place.host and 0 < place.port < 2**16
    )


def is_for_me(replica: "Replica", node_id: int, directory_id: bytes) -> bool:
    """Whether a request names this replica as the one it is meant for; old versions name nobody."""
    if node_id < 0:
        return True
    return replica.key.node_id == node_id and directory_id in (ZERO_UUID, replica.key.directory_id)


def has_cluster_id(replica: "Replica", cluster_id: str | None) -> bool:
    """Whether a request is meant for this cluster; one that names none is taken at its word."""
    return cluster_id is None or cluster_id == replica.identity.cluster_id
