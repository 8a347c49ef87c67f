"""DescribeCluster (key 60), versions 0 to 2: the cluster id, the controller and the nodes' addresses.

A broker tells of the brokers, a controller of the controllers (v1, KIP-919). v2 can have the fenced ones too.
"""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
from mainstem.cluster.image import MetadataImage
from mainstem.protocol.apis.k60_describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import CLUSTER_NAME, ResourceType

API: Final = Api("broker", "controller")
_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def handle(ctx: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    server = ctx.server
    on_controller = ctx.connection.listener.is_controller
    served = _CONTROLLERS if on_controller else _BROKERS
    if request.endpoint_type != served:
        return _refused(request.endpoint_type, served)
    response = DescribeClusterResponse(cluster_id=server.cluster_id, endpoint_type=served)
    if on_controller:
        response.controller_id = server.quorum.leader_id
        response.brokers = _controllers(server.image, ctx.listener_name)
    else:
        response.controller_id = server.node_id  # every broker hands on what is for the controller
        response.brokers = _brokers(server.image, ctx.listener_name, request.include_fenced_brokers)
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = ctx.authorized_operations(ResourceType.CLUSTER, CLUSTER_NAME)
    return response


def _refused(asked: int, served: int) -> DescribeClusterResponse:
    known = asked in (_BROKERS, _CONTROLLERS)
    code = ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
    where = "broker; use 1 (brokers)" if served == _BROKERS else "controller; use 2 (controllers)"
    return DescribeClusterResponse(
        error_code=code, error_message=f"endpoint type {asked} cannot be asked for on a {where}"
    )


def _brokers(image: MetadataImage, listener: str, with_fenced: bool) -> list[DescribeClusterBroker]:
    return [
        DescribeClusterBroker(broker.broker_id, endpoint.host, endpoint.port, broker.rack, broker.fenced)
        for broker in image.brokers.values()
        if (endpoint := broker.endpoints.get(listener)) is not None and (with_fenced or not broker.fenced)
    ]


def _controllers(image: MetadataImage, listener: str) -> list[DescribeClusterBroker]:
    return [
        DescribeClusterBroker(controller.controller_id, endpoint.host, endpoint.port)
        for controller in image.controllers.values()
        if (endpoint := controller.endpoints.get(listener)) is not None
    ]
