"""Heartbeat (key 12): keep a classic group member alive."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, nullable, versions


class HeartbeatRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=12, kind="request")
    group_id: str = ""
    generation_id: I32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, versions("3+"), nullable("3+")] = None


class HeartbeatResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=12, kind="response")
    throttle_time_ms: Annotated[I32, versions("1+")] = 0
    error_code: I16 = 0
