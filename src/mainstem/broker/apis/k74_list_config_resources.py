"""ListConfigResources (key 74), versions 0 to 1: what can have settings, by kind.

Topics and brokers all can, and are all listed. Of the others only those that have some are known. v0 asks for
client metrics alone.
"""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.cluster.image import MetadataImage
from mainstem.protocol.apis.k74_list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import ConfigResourceType
from mainstem.security.authorizer import CLUSTER_NAME, Operation, ResourceType

API: Final = Api("broker")


def handle(ctx: RequestContext, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    if not ctx.authorize(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        return ListConfigResourcesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if ctx.version == 0:
        kinds = [ConfigResourceType.CLIENT_METRICS]
    elif not set(request.resource_types) <= ConfigResourceType._value2member_map_.keys():
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    else:
        wanted = request.resource_types or list(ConfigResourceType)
        kinds = [kind for kind in ConfigResourceType if kind in wanted]
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in kinds
            for name in _names(ctx.broker.image, kind)
        ]
    )


def _names(image: MetadataImage, kind: ConfigResourceType) -> list[str]:
    if kind == ConfigResourceType.TOPIC:
        return list(image.topics_by_name)
    if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
        return [str(broker_id) for broker_id in image.brokers]
    return [name for of_kind, name in image.configs if of_kind == kind]
