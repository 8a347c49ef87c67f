"""IncrementalAlterConfigs (key 44): set, delete, append to or subtract from single settings."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, ApiMessage, nullable


class AlterableConfig(Struct, gc=False):
    name: str = ""
    config_operation: I8 = 0
    value: Annotated[str | None, nullable("0+")] = ""


class AlterConfigsResource(Struct, gc=False):
    resource_type: I8 = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = []


class IncrementalAlterConfigsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=44, kind="request")
    resources: list[AlterConfigsResource] = []
    validate_only: bool = False


class AlterConfigsResourceResponse(Struct, gc=False):
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
    resource_type: I8 = 0
    resource_name: str = ""


class IncrementalAlterConfigsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=44, kind="response")
    throttle_time_ms: I32 = 0
    responses: list[AlterConfigsResourceResponse] = []
