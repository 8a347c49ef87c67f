"""DescribeCluster (key 60), versions 0 to 2: the cluster id, the controller and the brokers' addresses."""

from typing import Final

from mainstem.broker.apis import Api
from mainstem.broker.requests.context import RequestContext
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
    broker = ctx.broker
    if request.endpoint_type != _BROKERS:
        code = (
            ErrorCode.MISMATCHED_ENDPOINT_TYPE
            if request.endpoint_type == _CONTROLLERS
            else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        )
        message = f"endpoint type {request.endpoint_type} cannot be asked for on a broker; use 1 (brokers)"
        return DescribeClusterResponse(error_code=code, error_message=message)
    response = DescribeClusterResponse(cluster_id=broker.cluster_id, controller_id=broker.node_id)
    for endpoint in broker.endpoints(ctx.listener_name):
        response.brokers.append(
            DescribeClusterBroker(
                broker_id=endpoint.node_id, host=endpoint.host, port=endpoint.port, rack=endpoint.rack
            )
        )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = ctx.authorized_operations(ResourceType.CLUSTER, CLUSTER_NAME)
    return response
