"""ListConfigResources (key 74): names of the resources that hold settings; in v0 client metrics only."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, ApiMessage, versions


class ListConfigResourcesRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=74, kind="request")
    resource_types: Annotated[list[I8], versions("1+")] = []


class ConfigResource(Struct, gc=False):
    resource_name: str = ""
    resource_type: Annotated[I8, versions("1+")] = 16


class ListConfigResourcesResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=74, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    config_resources: list[ConfigResource] = []
