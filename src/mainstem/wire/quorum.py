"""The metadata quorum as its leader describes it: who leads, who votes, who follows, and how far each is."""

from __future__ import annotations

from typing import NamedTuple

from mainstem.protocol.apis.k55_describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
    TopicData,
)
from mainstem.wire.connection import Connection
from mainstem.wire.errors import Address, WireError, check

_TOPIC = "__cluster_metadata"
_WHAT = "describe the metadata quorum"


class QuorumReplica(NamedTuple):
    """How far one node is. The times are -1 where the leader cannot tell, as for itself."""

    node_id: int
    directory_id: bytes
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


class QuorumState(NamedTuple):
    """What the leader knows. Addresses are those of the controllers' listeners, where they are told."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[QuorumReplica]
    observers: list[QuorumReplica]
    addresses: dict[int, list[Address]]

    @property
    def log_end_offset(self) -> int:
        """Where the leader's log ends."""
        ends = [replica.log_end_offset for replica in self.voters if replica.node_id == self.leader_id]
        return ends[0] if ends else self.high_watermark


def describe_quorum(connection: Connection) -> QuorumState:
    """Ask a broker or controller, which asks the leader."""
    request = DescribeQuorumRequest(topics=[TopicData(_TOPIC, [PartitionData(0)])])
    answer: DescribeQuorumResponse = connection.call(request)
    check(answer.error_code, _WHAT, answer.error_message)
    parts = [part for topic in answer.topics for part in topic.partitions]
    if not parts:
        raise WireError(f"{_WHAT}: the broker's answer is empty")
    part = parts[0]
    check(part.error_code, _WHAT, part.error_message)
    return QuorumState(
        part.leader_id,
        part.leader_epoch,
        part.high_watermark,
        [_replica(state) for state in part.current_voters],
        [_replica(state) for state in part.observers],
        {node.node_id: [(entry.host, entry.port) for entry in node.listeners] for node in answer.nodes},
    )


def _replica(state: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id,
        state.replica_directory_id,
        state.log_end_offset,
        state.last_fetch_timestamp,
        state.last_caught_up_timestamp,
    )
