"""Vote, BeginQuorumEpoch and EndQuorumEpoch: asking, being asked, and what the answers change."""

from typing import TYPE_CHECKING

from mainstem.cluster.raft.answers import common_answer
from mainstem.cluster.raft.candidate import Candidate
from mainstem.cluster.raft.events import Asked
from mainstem.cluster.raft.follower import Follower
from mainstem.cluster.raft.framing import (
    begin_quorum_epoch_response,
    end_quorum_epoch_response,
    endpoints_said,
    has_cluster_id,
    is_for_me,
    only_partition,
    vote_response,
)
from mainstem.cluster.raft.messages import Destination
from mainstem.cluster.raft.prospective import Prospective
from mainstem.cluster.raft.quorum_state import NOBODY
from mainstem.cluster.raft.resigned import Resigned
from mainstem.cluster.raft.voters import Endpoint, ReplicaKey
from mainstem.protocol.apis.k52_vote import VoteRequest, VoteResponse
from mainstem.protocol.apis.k53_begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from mainstem.protocol.apis.k54_end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    PartitionData,
)
from mainstem.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica


def on_vote(replica: "Replica", asked: Asked) -> None:
    request = asked.request
    assert isinstance(request, VoteRequest)
    replica.reply(asked.token, _vote(replica, request, asked.listener))


def _vote(replica: "Replica", request: VoteRequest, listener: str) -> VoteResponse:
    """Anybody may be asked: who thinks itself an observer may only not have read yet that it votes."""
    if not has_cluster_id(replica, request.cluster_id):
        return VoteResponse(ErrorCode.INCONSISTENT_CLUSTER_ID)
    partition = only_partition(request.topics)
    if partition is None:
        return VoteResponse(ErrorCode.INVALID_REQUEST)
    # A candidate's last record is of an epoch before the one it stands in.
    epoch_max = partition.replica_epoch if partition.pre_vote else partition.replica_epoch - 1
    if partition.last_offset < 0 or not 0 <= partition.last_offset_epoch <= epoch_max:
        return vote_response(replica, listener, ErrorCode.INVALID_REQUEST)
    if error := refusal_of_epoch(replica, partition.replica_id, partition.replica_epoch):
        return vote_response(replica, listener, error)
    if partition.replica_epoch > replica.epoch:
        replica.become_unattached(partition.replica_epoch)
    if not is_for_me(replica, request.voter_id, partition.voter_directory_id):
        return vote_response(replica, listener, ErrorCode.INVALID_VOTER_KEY)
    candidate = ReplicaKey(partition.replica_id, partition.replica_directory_id)
    _look_whether_voters_agree(replica, candidate)
    up_to_date = (partition.last_offset_epoch, partition.last_offset) >= (
        replica.last_epoch,
        replica.end_offset,
    )
    granted = replica.role.grants(replica, candidate, up_to_date, partition.pre_vote)
    if granted and not partition.pre_vote:
        replica.grant_vote(candidate)
    return vote_response(replica, listener, ErrorCode.NONE, granted)


def _look_whether_voters_agree(replica: "Replica", candidate: ReplicaKey) -> None:
    """Settings of several nodes can differ; what the log says cannot, it is only read sooner or later."""
    history = replica.history
    if history.kraft_version == 0 and len(history.voters) and history.voters.find(candidate) is None:
        replica.complain(
            f"node {candidate.node_id} stands for election, but the voters here are "
            f"{sorted(history.voters.ids)}: controller.quorum.voters differs between the nodes"
        )


def on_vote_answer(
    replica: "Replica", destination: Destination, request: VoteRequest, response: VoteResponse
) -> bool:
    """Whether the answer was of use; the destination is left alone for a while if not."""
    if response.error_code:
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and isinstance(replica.role, Prospective):
            # A voter that knows no pre-vote: the vote itself has to decide.
            replica.become_candidate()
            return True
        return False
    partition = only_partition(response.topics)
    if partition is None:
        return False
    endpoints = endpoints_said(replica, partition.leader_id, response.node_endpoints)
    handled = common_answer(
        replica, partition.error_code, partition.leader_id, partition.leader_epoch, endpoints
    )
    if handled is not None:
        return handled
    if partition.error_code:
        return False
    role = replica.role
    # Answers to a former role never come here; the kind of the question is checked all the same.
    asked = only_partition(request.topics)
    if isinstance(role, Prospective if asked.pre_vote else Candidate):
        if partition.vote_granted:
            role.election.granted_by(destination.node_id)
        else:
            role.election.rejected_by(destination.node_id)
    return True


def on_begin_quorum_epoch(replica: "Replica", asked: Asked) -> None:
    request = asked.request
    assert isinstance(request, BeginQuorumEpochRequest)
    replica.reply(asked.token, _begin(replica, request, asked.listener))


def _begin(replica: "Replica", request: BeginQuorumEpochRequest, listener: str) -> BeginQuorumEpochResponse:
    if not has_cluster_id(replica, request.cluster_id):
        return BeginQuorumEpochResponse(ErrorCode.INCONSISTENT_CLUSTER_ID)
    partition = only_partition(request.topics)
    if partition is None:
        return BeginQuorumEpochResponse(ErrorCode.INVALID_REQUEST)
    if error := refusal_of_epoch(replica, partition.leader_id, partition.leader_epoch):
        return begin_quorum_epoch_response(replica, listener, error)
    endpoints = tuple(Endpoint(each.name, each.host, each.port) for each in request.leader_endpoints)
    replica.meet_leader(partition.leader_epoch, partition.leader_id, endpoints)
    if not is_for_me(replica, request.voter_id, partition.voter_directory_id):
        return begin_quorum_epoch_response(replica, listener, ErrorCode.INVALID_VOTER_KEY)
    return begin_quorum_epoch_response(replica, listener, ErrorCode.NONE)


def on_begin_quorum_epoch_answer(replica: "Replica", response: BeginQuorumEpochResponse) -> bool:
    return _epoch_answer(replica, response)


def on_end_quorum_epoch(replica: "Replica", asked: Asked) -> None:
    request = asked.request
    assert isinstance(request, EndQuorumEpochRequest)
    replica.reply(asked.token, _end(replica, request, asked.listener))


def _end(replica: "Replica", request: EndQuorumEpochRequest, listener: str) -> EndQuorumEpochResponse:
    if not has_cluster_id(replica, request.cluster_id):
        return EndQuorumEpochResponse(ErrorCode.INCONSISTENT_CLUSTER_ID)
    partition = only_partition(request.topics)
    if partition is None:
        return EndQuorumEpochResponse(ErrorCode.INVALID_REQUEST)
    if error := refusal_of_epoch(replica, partition.leader_id, partition.leader_epoch):
        return end_quorum_epoch_response(replica, listener, error)
    endpoints = tuple(Endpoint(each.name, each.host, each.port) for each in request.leader_endpoints)
    replica.meet_leader(partition.leader_epoch, partition.leader_id, endpoints)
    role = replica.role
    if isinstance(role, Follower) and replica.leader_id == partition.leader_id:
        role.leader_resigned(replica.now_ms, _successor_backoff_ms(replica, partition))
    return end_quorum_epoch_response(replica, listener, ErrorCode.NONE)


def _successor_backoff_ms(replica: "Replica", partition: PartitionData) -> int:
    """The first successor stands at once, each later one twice as late as the one before; who is not named
    comes last.
    """
    successors = [
        ReplicaKey(each.candidate_id, each.candidate_directory_id) for each in partition.preferred_candidates
    ] or [ReplicaKey(node_id) for node_id in partition.preferred_successors]
    limit_ms = replica.settings.election_backoff_max_ms
    for position, successor in enumerate(successors):
        if successor.matches(replica.key):
            base_ms = limit_ms >> (len(successors) - 1)
            return 0 if position == 0 else min(limit_ms, base_ms << (position - 1))
    return limit_ms


def on_end_quorum_epoch_answer(
    replica: "Replica", destination: Destination, response: EndQuorumEpochResponse
) -> bool:
    if not _epoch_answer(replica, response):
        return False
    if isinstance(replica.role, Resigned):
        replica.role.told(destination.node_id)
    return True


def _epoch_answer(replica: "Replica", response: BeginQuorumEpochResponse | EndQuorumEpochResponse) -> bool:
    partition = None if response.error_code else only_partition(response.topics)
    if partition is None:
        return False
    endpoints = endpoints_said(replica, partition.leader_id, response.node_endpoints)
    handled = common_answer(
        replica, partition.error_code, partition.leader_id, partition.leader_epoch, endpoints
    )
    return not partition.error_code if handled is None else handled


def refusal_of_epoch(replica: "Replica", node_id: int, epoch: int) -> ErrorCode | None:
    """What is wrong with a request that only voters send each other."""
    if epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if node_id <= NOBODY:
        return ErrorCode.INVALID_REQUEST
    return None
