"""AlterConfigs (key 33), versions 0 to 2: replaces all settings of a topic, group or broker at once.

Kept for old clients; IncrementalAlterConfigs changes single settings.
"""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.alter_configs import alter
from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.apis.k33_alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from mainstem.protocol.errors import KafkaError

API: Final = Api("broker", "controller", forwarded=True)


async def handle(ctx: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    return await alter(ctx, request, lambda: ctx.controller.alter_configs(request), refuse)


def refuse(request: AlterConfigsRequest, error: KafkaError) -> AlterConfigsResponse:
    """The same error for every resource."""
    return AlterConfigsResponse(
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
