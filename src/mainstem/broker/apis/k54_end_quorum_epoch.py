"""EndQuorumEpoch (key 54), versions 0 and 1: v1 directory ids and endpoints (KIP-853)."""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.network.connection import Parked
from mainstem.broker.quorum.asking import ask_quorum
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k54_end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from mainstem.security.authorizer import Operation

API: Final = Api("controller")


def handle(ctx: RequestContext, request: EndQuorumEpochRequest) -> Any | Parked:
    return ask_quorum(ctx, request, Operation.CLUSTER_ACTION, EndQuorumEpochResponse)
