"""DescribeCluster (key 60): cluster id, controller and brokers, or the controllers from v1."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, ApiMessage, nullable, versions


class DescribeClusterRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=60, kind="request")
    include_cluster_authorized_operations: bool = False
    endpoint_type: Annotated[I8, versions("1+")] = 1
    include_fenced_brokers: Annotated[bool, versions("2+")] = False


class DescribeClusterBroker(Struct, gc=False):
    broker_id: I32 = 0
    host: str = ""
    port: I32 = 0
    rack: Annotated[str | None, nullable("0+")] = None
    is_fenced: Annotated[bool, versions("2+")] = False


class DescribeClusterResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=60, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None
    endpoint_type: Annotated[I8, versions("1+")] = 1
    cluster_id: str = ""
    controller_id: I32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: I32 = -2147483648
