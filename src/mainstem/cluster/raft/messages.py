"""The requests and responses that pass through the raft core, and where they go."""

from collections.abc import Hashable

from msgspec import Struct

from mainstem.protocol.apis.k01_fetch import FetchRequest, FetchResponse
from mainstem.protocol.apis.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from mainstem.protocol.apis.k52_vote import VoteRequest, VoteResponse
from mainstem.protocol.apis.k53_begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from mainstem.protocol.apis.k54_end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from mainstem.protocol.apis.k55_describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from mainstem.protocol.apis.k59_fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from mainstem.protocol.apis.k80_add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from mainstem.protocol.apis.k81_remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from mainstem.protocol.apis.k82_update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse

# Names one request that was asked of this node.
Token = Hashable

Request = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | AddRaftVoterRequest
    | RemoveRaftVoterRequest
    | UpdateRaftVoterRequest
    | DescribeQuorumRequest
    # Sent to a replica that is to become a voter, never asked of the core.
    | ApiVersionsRequest
)
Response = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
    | AddRaftVoterResponse
    | RemoveRaftVoterResponse
    | UpdateRaftVoterResponse
    | DescribeQuorumResponse
    | ApiVersionsResponse
)


class Destination(Struct, frozen=True, gc=False):
    """A node as it is reached on the controller listener. Ids below zero stand for bootstrap servers."""

    node_id: int
    host: str
    port: int
