"""LeaveGroup (key 13): remove one member, or several from v3, from a classic group."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, nullable, versions


class MemberIdentity(Struct, gc=False):
    member_id: str = ""
    group_instance_id: Annotated[str | None, nullable("3+")] = None
    reason: Annotated[str | None, versions("5+"), nullable("5+")] = None


class LeaveGroupRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=13, kind="request")
    group_id: str = ""
    member_id: Annotated[str, versions("0-2")] = ""
    members: Annotated[list[MemberIdentity], versions("3+")] = []


class MemberResponse(Struct, gc=False):
    member_id: str = ""
    group_instance_id: Annotated[str | None, nullable("3+")] = ""
    error_code: I16 = 0


class LeaveGroupResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=13, kind="response")
    throttle_time_ms: Annotated[I32, versions("1+")] = 0
    error_code: I16 = 0
    members: Annotated[list[MemberResponse], versions("3+")] = []
