"""FindCoordinator (key 10): which broker coordinates a group, a transaction or a share partition."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, ApiMessage, nullable, versions


class FindCoordinatorRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=10, kind="request")
    key: Annotated[str, versions("0-3")] = ""
    key_type: Annotated[I8, versions("1+")] = 0
    coordinator_keys: Annotated[list[str], versions("4+")] = []


class Coordinator(Struct, gc=False):
    key: str = ""
    node_id: I32 = 0
    host: str = ""
    port: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("4+")] = ""


class FindCoordinatorResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=10, kind="response")
    throttle_time_ms: Annotated[I32, versions("1+")] = 0
    error_code: Annotated[I16, versions("0-3")] = 0
    error_message: Annotated[str | None, versions("1-3"), nullable("1-3")] = ""
    node_id: Annotated[I32, versions("0-3")] = 0
    host: Annotated[str, versions("0-3")] = ""
    port: Annotated[I32, versions("0-3")] = 0
    coordinators: Annotated[list[Coordinator], versions("4+")] = []
