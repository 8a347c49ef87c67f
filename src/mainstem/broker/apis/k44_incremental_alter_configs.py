"""IncrementalAlterConfigs (key 44), versions 0 to 1: sets, deletes, appends to and subtracts from single
settings.

For topics and brokers (one, or all by the empty name). A change is in force when the answer leaves.
"""

from mainstem.broker.alter_configs import denial
from mainstem.broker.context import RequestContext
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from mainstem.protocol.errors import ErrorCode, KafkaError


async def handle(
    ctx: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
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
        response = await ctx.node.controller.submit(
            lambda controller: controller.incremental_alter_configs(request)
        )
    except KafkaError as error:
        response = IncrementalAlterConfigsResponse(responses=[_failed(r, error) for r in allowed])
    response.responses += [_failed(resource, KafkaError(code)) for resource, code in denied]
    return response


def _failed(resource: AlterConfigsResource, error: KafkaError) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error.code,
        error_message=error.message or error.code.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
