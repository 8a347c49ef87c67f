"""IncrementalAlterConfigs (key 44), versions 0 to 1: sets, deletes, appends to and subtracts from single
settings.

For topics, groups and brokers (one, or all by the empty name). A change is in force when the answer leaves.
"""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.alter_configs import alter
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from mainstem.protocol.errors import KafkaError

API: Final = Api("broker", "controller", forwarded=True)


async def handle(
    ctx: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    return await alter(ctx, request, lambda: ctx.controller.incremental_alter_configs(request), refuse)


def refuse(request: IncrementalAlterConfigsRequest, error: KafkaError) -> IncrementalAlterConfigsResponse:
    """The same error for every resource."""
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error.code,
                error.message or error.code.message,
                resource.resource_type,
                resource.resource_name,
            )
            for resource in request.resources
        ]
    )
