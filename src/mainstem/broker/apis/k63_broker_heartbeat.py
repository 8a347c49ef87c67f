"""BrokerHeartbeat (key 63), versions 0 to 2: a broker is alive, and says what it wants.

When the connection is gone on which one sent its last heartbeat, the broker may be gone with it.
"""

from functools import partial
from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k63_broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("controller")


async def handle(ctx: RequestContext, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    if not ctx.authorize(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return BrokerHeartbeatResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    lost = partial(ctx.controller.connection_lost, request.broker_id, request.broker_epoch)
    ctx.server.network.when_closed(ctx.connection, lost)
    return await ctx.controller.heartbeat(request)
