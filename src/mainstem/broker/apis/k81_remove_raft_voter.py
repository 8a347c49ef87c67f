"""RemoveRaftVoter (key 81), version 0 (KIP-853)."""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.network.connection import Parked
from mainstem.broker.quorum.asking import ask_quorum
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k81_remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from mainstem.security.authorizer import Operation

API: Final = Api("broker", "controller", forwarded=True)


def handle(ctx: RequestContext, request: RemoveRaftVoterRequest) -> Any | Parked:
    return ask_quorum(ctx, request, Operation.ALTER, RemoveRaftVoterResponse)
