"""CreateAcls (key 30): add access rules."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, ApiMessage, nullable


class AclCreation(Struct, gc=False):
    resource_type: I8 = 0
    resource_name: str = ""
    resource_pattern_type: I8 = 3
    principal: str = ""
    host: str = ""
    operation: I8 = 0
    permission_type: I8 = 0


class CreateAclsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=30, kind="request")
    creations: list[AclCreation] = []


class AclCreationResult(Struct, gc=False):
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""


class CreateAclsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=30, kind="response")
    throttle_time_ms: I32 = 0
    results: list[AclCreationResult] = []
