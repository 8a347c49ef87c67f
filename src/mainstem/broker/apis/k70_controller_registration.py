"""ControllerRegistration (key 70), version 0: a controller says where it listens (KIP-919)."""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k70_controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("controller")


async def handle(
    ctx: RequestContext, request: ControllerRegistrationRequest
) -> ControllerRegistrationResponse:
    if not ctx.authorize(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return ControllerRegistrationResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return await ctx.controller.register_controller(request)
