"""AlterConfigs (key 33), versions 0 to 2: replaces all settings of a topic or broker at once.

Kept for old clients; IncrementalAlterConfigs changes single settings.
"""

from mainstem.broker.alter_configs import denial
from mainstem.broker.context import RequestContext
from mainstem.protocol.apis.k33_alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from mainstem.protocol.errors import ErrorCode, KafkaError


async def handle(ctx: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    denied: list[tuple[AlterConfigsResource, ErrorCode]] = []
    allowed: list[AlterConfigsResource] = []
    for resource in request.resources:
        code = denial(ctx, resource)
        if code is None:
            allowed.append(resource)
        else:
            denied.append((resource, code))
    request.resources = allowed
    try:
        response = await ctx.node.controller.submit(lambda controller: controller.alter_configs(request))
    except KafkaError as error:
        response = AlterConfigsResponse(responses=[_failed(r, error) for r in allowed])
    response.responses += [_failed(resource, KafkaError(code)) for resource, code in denied]
    return response


def _failed(resource: AlterConfigsResource, error: KafkaError) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error.code,
        error_message=error.message or error.code.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
