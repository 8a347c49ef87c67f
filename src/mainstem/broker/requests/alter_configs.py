"""Altering settings, as AlterConfigs and IncrementalAlterConfigs do it alike.

Who may alter which resource, the controller's decision, and a result for every resource; the two APIs differ
only in what the controller is asked.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from mainstem.broker.requests.context import RequestContext
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.resources import ConfigResourceType
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType


class ConfigResource(Protocol):
    """What both APIs say of a resource."""

    resource_type: int
    resource_name: str


class AlterRequest(Protocol):
    """A request of either API."""

    resources: Any


class AlterResponse(Protocol):
    """A response of either API."""

    responses: Any


Q = TypeVar("Q", bound=AlterRequest)
R = TypeVar("R", bound=AlterResponse)


async def alter(
    ctx: RequestContext,
    request: Q,
    decide: Callable[[], Awaitable[R]],
    refuse: Callable[[Q, KafkaError], R],
) -> R:
    """Have the controller decide on what the client may alter; the rest, and a failure, gets its error."""
    denied: list[tuple[ConfigResource, ErrorCode]] = []
    allowed: list[ConfigResource] = []
    for resource in request.resources:
        code = _denial(ctx, resource)
        if code is None:
            allowed.append(resource)
        else:
            denied.append((resource, code))
    request.resources = allowed
    try:
        response = await decide()
    except KafkaError as error:
        response = refuse(request, error)
    for resource, code in denied:
        request.resources = [resource]
        response.responses += refuse(request, KafkaError(code)).responses
    return response


def _denial(ctx: RequestContext, resource: ConfigResource) -> ErrorCode | None:
    """The error of a client that may not alter this resource, or None when it may."""
    if resource.resource_type == ConfigResourceType.TOPIC:
        if not ctx.authorize(Operation.ALTER_CONFIGS, ResourceType.TOPIC, resource.resource_name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif resource.resource_type == ConfigResourceType.GROUP:
        if not ctx.authorize(Operation.ALTER_CONFIGS, ResourceType.GROUP, resource.resource_name):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
    elif not ctx.authorize(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return None
