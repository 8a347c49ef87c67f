"""AddRaftVoter (key 80), versions 0 and 1 (KIP-853): v1 may be answered before it is committed."""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.network.connection import Parked
from mainstem.broker.quorum.asking import ask_quorum
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k80_add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from mainstem.security.authorizer import Operation

API: Final = Api("broker", "controller", forwarded=True)


def handle(ctx: RequestContext, request: AddRaftVoterRequest) -> Any | Parked:
    return ask_quorum(ctx, request, Operation.ALTER, AddRaftVoterResponse)
