"""AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter as they are asked of a node, checked and handed to the
leader's `VoterChanges`; and kraft.version.
"""

from typing import TYPE_CHECKING

from mainstem.cluster.raft.control_records import KRaftVersionFeature
from mainstem.cluster.raft.effects import UpgradeAnswered
from mainstem.cluster.raft.events import Asked, UpgradeKRaftVersion
from mainstem.cluster.raft.framing import has_cluster_id
from mainstem.cluster.raft.leader import Leader
from mainstem.cluster.raft.messages import Destination, Response
from mainstem.cluster.raft.serving import refusal
from mainstem.cluster.raft.voters import Endpoint, ReplicaKey, Voter
from mainstem.protocol.apis.k18_api_versions import ApiVersionsResponse
from mainstem.protocol.apis.k80_add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from mainstem.protocol.apis.k81_remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from mainstem.protocol.apis.k82_update_raft_voter import (
    CurrentLeader,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from mainstem.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica

_OTHER_CLUSTER = "the request is meant for another cluster"
_NO_VOTER = "the request names no voter: an id from 0 on and a directory id"
_ELSEWHERE = "this node does not lead the quorum"


def on_add_voter(replica: "Replica", asked: Asked) -> None:
    request = asked.request
    assert isinstance(request, AddRaftVoterRequest)
    role = replica.role
    problem = _problem(replica, request, replica.epoch)
    if problem is not None or not isinstance(role, Leader):
        error, message = problem or (ErrorCode.NOT_LEADER_OR_FOLLOWER, _ELSEWHERE)
        replica.reply(asked.token, AddRaftVoterResponse(error_code=error, error_message=message))
        return
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    endpoints = tuple(Endpoint(each.name, each.host, each.port) for each in request.listeners)
    role.changes.add(replica, asked.token, request, Voter(key, endpoints))


def on_remove_voter(replica: "Replica", asked: Asked) -> None:
    request = asked.request
    assert isinstance(request, RemoveRaftVoterRequest)
    role = replica.role
    problem = _problem(replica, request, replica.epoch)
    if problem is not None or not isinstance(role, Leader):
        error, message = problem or (ErrorCode.NOT_LEADER_OR_FOLLOWER, _ELSEWHERE)
        replica.reply(asked.token, RemoveRaftVoterResponse(error_code=error, error_message=message))
        return
    voter = Voter(ReplicaKey(request.voter_id, request.voter_directory_id))
    role.changes.remove(replica, asked.token, voter)


def on_update_voter(replica: "Replica", asked: Asked) -> None:
    request = asked.request
    assert isinstance(request, UpdateRaftVoterRequest)

    def answer(error: ErrorCode, message: str) -> Response:
        endpoint = replica.endpoint_of_leader(asked.listener)
        host, port = ("", 0) if endpoint is None else (endpoint.host, endpoint.port)
        leader = CurrentLeader(replica.leader_id, replica.epoch, host, port)
        return UpdateRaftVoterResponse(error_code=error, current_leader=leader)

    role, feature = replica.role, request.k_raft_version_feature
    endpoints = tuple(Endpoint(each.name, each.host, each.port) for each in request.listeners)
    voter = Voter(
        ReplicaKey(request.voter_id, request.voter_directory_id),
        endpoints,
        KRaftVersionFeature(feature.min_supported_version, feature.max_supported_version),
    )
    problem = _problem(replica, request, request.current_leader_epoch)
    if problem is not None or not isinstance(role, Leader):
        error, message = problem or (ErrorCode.NOT_LEADER_OR_FOLLOWER, _ELSEWHERE)
        replica.reply(asked.token, answer(error, message))
    elif (
        voter.endpoint(replica.identity.listener) is None
        or not 0 <= feature.min_supported_version <= feature.max_supported_version
    ):
        replica.reply(asked.token, answer(ErrorCode.INVALID_REQUEST, ""))
    else:
        role.changes.update(replica, asked.token, answer, voter)


def on_upgrade(replica: "Replica", event: UpgradeKRaftVersion) -> None:
    role = replica.role
    if isinstance(role, Leader):
        role.changes.upgrade(replica, event)
    else:
        replica.effects.append(UpgradeAnswered(event.token, ErrorCode.NOT_LEADER_OR_FOLLOWER, _ELSEWHERE))


def on_api_versions_answer(
    replica: "Replica", destination: Destination, response: ApiVersionsResponse | None
) -> None:
    """None when there is no answer."""
    if isinstance(replica.role, Leader):
        replica.role.changes.on_api_versions(replica, destination, response)


def _problem(
    replica: "Replica",
    request: AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest,
    epoch: int,
) -> tuple[ErrorCode, str] | None:
    if not has_cluster_id(replica, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID, _OTHER_CLUSTER
    if (error := refusal(replica, epoch)) is not None:
        return error, _ELSEWHERE
    if request.voter_id < 0 or not any(request.voter_directory_id):
        return ErrorCode.INVALID_REQUEST, _NO_VOTER
    return None
