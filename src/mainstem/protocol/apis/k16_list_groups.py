"""ListGroups (key 16): all groups of a broker, filtered by state (v4) and by type (v5)."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, versions


class ListGroupsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=16, kind="request")
    states_filter: Annotated[list[str], versions("4+")] = []
    types_filter: Annotated[list[str], versions("5+")] = []


class ListedGroup(Struct, gc=False):
    group_id: str = ""
    protocol_type: str = ""
    group_state: Annotated[str, versions("4+")] = ""
    group_type: Annotated[str, versions("5+")] = ""


class ListGroupsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=16, kind="response")
    throttle_time_ms: Annotated[I32, versions("1+")] = 0
    error_code: I16 = 0
    groups: list[ListedGroup] = []
