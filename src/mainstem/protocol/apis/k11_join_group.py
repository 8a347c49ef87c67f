"""JoinGroup (key 11): enter a classic group and take part in its rebalance."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, nullable, versions


class JoinGroupRequestProtocol(Struct, gc=False):
    name: str = ""
    metadata: bytes = b""


class JoinGroupRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=11, kind="request")
    group_id: str = ""
    session_timeout_ms: I32 = 0
    rebalance_timeout_ms: Annotated[I32, versions("1+")] = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, versions("5+"), nullable("5+")] = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: Annotated[str | None, versions("8+"), nullable("8+")] = None


class JoinGroupResponseMember(Struct, gc=False):
    member_id: str = ""
    group_instance_id: Annotated[str | None, versions("5+"), nullable("5+")] = None
    metadata: bytes = b""


class JoinGroupResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=11, kind="response")
    throttle_time_ms: Annotated[I32, versions("2+")] = 0
    error_code: I16 = 0
    generation_id: I32 = -1
    protocol_type: Annotated[str | None, versions("7+"), nullable("7+")] = None
    protocol_name: Annotated[str | None, nullable("7+")] = ""
    leader: str = ""
    skip_assignment: Annotated[bool, versions("9+")] = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = []
