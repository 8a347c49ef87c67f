"""From a request's handler to the quorum: what every API of it has in common."""

from typing import Any

from mainstem.broker.network.connection import Parked
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.pending import Pending
from mainstem.cluster.raft.messages import Request
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType


def ask_quorum(
    ctx: RequestContext, request: Request, operation: Operation, response_class: type[Any]
) -> Any | Parked:
    """The quorum's answer, or PARKED until it comes. `operation` is what the client must be allowed to do
    with the cluster.
    """

    def fail(error: ErrorCode) -> Any:
        response = response_class(error_code=error)
        if hasattr(response, "error_message"):
            response.error_message = error.message
        return response

    if not ctx.authorize(operation, ResourceType.CLUSTER, CLUSTER_NAME):
        return fail(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    pending = Pending(ctx, fail)
    ctx.server.quorum.ask(request, ctx.version, pending, ctx.listener_name)
    return pending.outcome()
