"""AlterPartition (key 56), versions 2 to 3: leaders say which replicas are in sync."""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k56_alter_partition import AlterPartitionRequest, AlterPartitionResponse
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("controller")


async def handle(ctx: RequestContext, request: AlterPartitionRequest) -> AlterPartitionResponse:
    if not ctx.authorize(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return AlterPartitionResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return await ctx.controller.alter_partition(request, ctx.version)
