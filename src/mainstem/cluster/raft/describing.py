"""DescribeQuorum: what the leader knows of every replica."""

from typing import TYPE_CHECKING

from mainstem.cluster.raft.events import Asked
from mainstem.cluster.raft.framing import PARTITION, only_partition
from mainstem.cluster.raft.leader import Leader, Progress
from mainstem.cluster.topic_names import CLUSTER_METADATA_TOPIC
from mainstem.protocol.apis.k55_describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from mainstem.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica


def on_describe_quorum(replica: "Replica", asked: Asked) -> None:
    request = asked.request
    assert isinstance(request, DescribeQuorumRequest)
    replica.reply(asked.token, _describe(replica, request))


def _describe(replica: "Replica", request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    if only_partition(request.topics) is None:
        unknown = [
            ResponseTopicData(
                topic.topic_name,
                [
                    _failed(partition.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return DescribeQuorumResponse(topics=unknown)
    leader = replica.role
    if not isinstance(leader, Leader):
        partition = _failed(PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return DescribeQuorumResponse(topics=[ResponseTopicData(CLUSTER_METADATA_TOPIC, [partition])])
    leader.forget_observers(replica.now_ms)
    partition = ResponsePartitionData(
        PARTITION,
        error_message=None,
        leader_id=replica.key.node_id,
        leader_epoch=replica.epoch,
        high_watermark=-1 if replica.high_watermark is None else replica.high_watermark,
        current_voters=[
            _me(replica) if node_id == replica.key.node_id else _state(progress)
            for node_id, progress in sorted(leader.voters.items())
        ],
        observers=[_state(progress) for _, progress in sorted(leader.observers.items())],
    )
    nodes = [
        Node(voter.key.node_id, [Listener(each.listener, each.host, each.port) for each in voter.endpoints])
        for voter in replica.history.voters
    ]
    return DescribeQuorumResponse(
        error_message=None, topics=[ResponseTopicData(CLUSTER_METADATA_TOPIC, [partition])], nodes=nodes
    )


def _me(replica: "Replica") -> ReplicaState:
    """The leader itself, always caught up with itself."""
    return ReplicaState(
        replica.key.node_id, replica.key.directory_id, replica.durable_offset, replica.now_ms, replica.now_ms
    )


def _state(progress: Progress) -> ReplicaState:
    return ReplicaState(
        progress.key.node_id,
        progress.key.directory_id,
        -1 if progress.end_offset is None else progress.end_offset,
        progress.fetched_ms,
        progress.caught_up_ms,
    )


def _failed(index: int, error: ErrorCode) -> ResponsePartitionData:
    return ResponsePartitionData(index, error, error.message)
