"""DescribeGroups (key 15): state and members of classic groups."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, nullable, versions


class DescribeGroupsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=15, kind="request")
    groups: list[str] = []
    include_authorized_operations: Annotated[bool, versions("3+")] = False


class DescribedGroupMember(Struct, gc=False):
    member_id: str = ""
    group_instance_id: Annotated[str | None, versions("4+"), nullable("4+")] = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(Struct, gc=False):
    error_code: I16 = 0
    error_message: Annotated[str | None, versions("6+"), nullable("6+")] = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: Annotated[I32, versions("3+")] = -2147483648


class DescribeGroupsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=15, kind="response")
    throttle_time_ms: Annotated[I32, versions("1+")] = 0
    groups: list[DescribedGroup] = []
