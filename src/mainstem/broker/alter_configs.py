"""Who may alter which resource's settings: shared by AlterConfigs and IncrementalAlterConfigs."""

from typing import Protocol

from mainstem.broker.context import RequestContext
from mainstem.cluster.image import ResourceType as ConfigResourceType
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType


class ConfigResource(Protocol):
    """What both APIs say of a resource."""

    resource_type: int
    resource_name: str


def denial(ctx: RequestContext, resource: ConfigResource) -> ErrorCode | None:
    """The error of a client that may not alter this resource, or None when it may."""
    if resource.resource_type == ConfigResourceType.TOPIC:
        if not ctx.authorize(Operation.ALTER_CONFIGS, ResourceType.TOPIC, resource.resource_name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif not ctx.authorize(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return None
