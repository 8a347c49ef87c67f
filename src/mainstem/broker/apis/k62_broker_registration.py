"""BrokerRegistration (key 62), versions 0 to 4: a broker that starts joins the cluster."""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k62_broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("controller")


async def handle(ctx: RequestContext, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
    if not ctx.authorize(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return BrokerRegistrationResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return await ctx.controller.register_broker(request, is_own=False)
