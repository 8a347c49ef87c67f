"""SyncGroup (key 14): hand in and receive the assignment of a classic group's generation."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, nullable, versions


class SyncGroupRequestAssignment(Struct, gc=False):
    member_id: str = ""
    assignment: bytes = b""


class SyncGroupRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=14, kind="request")
    group_id: str = ""
    generation_id: I32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, versions("3+"), nullable("3+")] = None
    protocol_type: Annotated[str | None, versions("5+"), nullable("5+")] = None
    protocol_name: Annotated[str | None, versions("5+"), nullable("5+")] = None
    assignments: list[SyncGroupRequestAssignment] = []


class SyncGroupResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=14, kind="response")
    throttle_time_ms: Annotated[I32, versions("1+")] = 0
    error_code: I16 = 0
    protocol_type: Annotated[str | None, versions("5+"), nullable("5+")] = None
    protocol_name: Annotated[str | None, versions("5+"), nullable("5+")] = None
    assignment: bytes = b""
