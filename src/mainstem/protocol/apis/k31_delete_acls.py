"""DeleteAcls (key 31): remove the access rules that match filters."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, ApiMessage, nullable


class DeleteAclsFilter(Struct, gc=False):
    resource_type_filter: I8 = 0
    resource_name_filter: Annotated[str | None, nullable("0+")] = ""
    pattern_type_filter: I8 = 3
    principal_filter: Annotated[str | None, nullable("0+")] = ""
    host_filter: Annotated[str | None, nullable("0+")] = ""
    operation: I8 = 0
    permission_type: I8 = 0


class DeleteAclsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=31, kind="request")
    filters: list[DeleteAclsFilter] = []


class DeleteAclsMatchingAcl(Struct, gc=False):
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
    resource_type: I8 = 0
    resource_name: str = ""
    pattern_type: I8 = 3
    principal: str = ""
    host: str = ""
    operation: I8 = 0
    permission_type: I8 = 0


class DeleteAclsFilterResult(Struct, gc=False):
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
    matching_acls: list[DeleteAclsMatchingAcl] = []


class DeleteAclsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=31, kind="response")
    throttle_time_ms: I32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
