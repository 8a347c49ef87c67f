"""FetchSnapshot (key 59), versions 0 and 1: v1 directory id and endpoints (KIP-853)."""

from typing import Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.network.connection import Parked
from mainstem.broker.quorum.asking import ask_quorum
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k59_fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from mainstem.security.authorizer import Operation

API: Final = Api("controller")


def handle(ctx: RequestContext, request: FetchSnapshotRequest) -> Any | Parked:
    return ask_quorum(ctx, request, Operation.CLUSTER_ACTION, FetchSnapshotResponse)
