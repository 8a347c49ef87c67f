"""Vote (key 52), versions 0 to 2: v1 directory ids (KIP-853), v2 pre-votes (KIP-996)."""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.network.connection import Parked
from mainstem.broker.quorum.asking import ask_quorum
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k52_vote import VoteRequest, VoteResponse
from mainstem.security.authorizer import Operation

API: Final = Api("controller")


def handle(ctx: RequestContext, request: VoteRequest) -> Any | Parked:
    return ask_quorum(ctx, request, Operation.CLUSTER_ACTION, VoteResponse)
