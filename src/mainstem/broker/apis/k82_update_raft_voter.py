"""UpdateRaftVoter (key 82), version 0 (KIP-853): a voter tells its endpoints and kraft.version."""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.network.connection import Parked
from mainstem.broker.quorum.asking import ask_quorum
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k82_update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from mainstem.security.authorizer import Operation

API: Final = Api("controller")


def handle(ctx: RequestContext, request: UpdateRaftVoterRequest) -> Any | Parked:
    return ask_quorum(ctx, request, Operation.CLUSTER_ACTION, UpdateRaftVoterResponse)
