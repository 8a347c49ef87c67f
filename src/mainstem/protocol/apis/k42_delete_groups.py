"""DeleteGroups (key 42): delete empty groups with their positions."""

from typing import ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage


class DeleteGroupsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=42, kind="request")
    groups_names: list[str] = []


class DeletableGroupResult(Struct, gc=False):
    group_id: str = ""
    error_code: I16 = 0


class DeleteGroupsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=42, kind="response")
    throttle_time_ms: I32 = 0
    results: list[DeletableGroupResult] = []
