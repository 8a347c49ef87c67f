"""DescribeAcls (key 29): list the access rules that match a filter."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, ApiMessage, nullable


class DescribeAclsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=29, kind="request")
    resource_type_filter: I8 = 0
    resource_name_filter: Annotated[str | None, nullable("0+")] = ""
    pattern_type_filter: I8 = 3
    principal_filter: Annotated[str | None, nullable("0+")] = ""
    host_filter: Annotated[str | None, nullable("0+")] = ""
    operation: I8 = 0
    permission_type: I8 = 0


class AclDescription(Struct, gc=False):
    principal: str = ""
    host: str = ""
    operation: I8 = 0
    permission_type: I8 = 0


class DescribeAclsResource(Struct, gc=False):
    resource_type: I8 = 0
    resource_name: str = ""
    pattern_type: I8 = 3
    acls: list[AclDescription] = []


class DescribeAclsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=29, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
    resources: list[DescribeAclsResource] = []
