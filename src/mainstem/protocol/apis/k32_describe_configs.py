"""DescribeConfigs (key 32): settings of topics, brokers and other resources, with sources and synonyms."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, ApiMessage, nullable, versions


class DescribeConfigsResource(Struct, gc=False):
    resource_type: I8 = 0
    resource_name: str = ""
    configuration_keys: Annotated[list[str] | None, nullable("0+")] = []


class DescribeConfigsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=32, kind="request")
    resources: list[DescribeConfigsResource] = []
    include_synonyms: bool = False
    include_documentation: Annotated[bool, versions("3+")] = False


class DescribeConfigsSynonym(Struct, gc=False):
    name: str = ""
    value: Annotated[str | None, nullable("0+")] = ""
    source: I8 = 0


class DescribeConfigsResourceResult(Struct, gc=False):
    name: str = ""
    value: Annotated[str | None, nullable("0+")] = ""
    read_only: bool = False
    config_source: I8 = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = []
    config_type: Annotated[I8, versions("3+")] = 0
    documentation: Annotated[str | None, versions("3+"), nullable("0+")] = ""


class DescribeConfigsResult(Struct, gc=False):
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
    resource_type: I8 = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = []


class DescribeConfigsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=32, kind="response")
    throttle_time_ms: I32 = 0
    results: list[DescribeConfigsResult] = []
