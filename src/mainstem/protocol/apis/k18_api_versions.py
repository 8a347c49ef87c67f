"""ApiVersions (key 18): the APIs and feature levels that the broker serves. Its response header is v0."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, tagged, versions


class ApiVersionsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=18, kind="request")
    client_software_name: Annotated[str, versions("3+")] = ""
    client_software_version: Annotated[str, versions("3+")] = ""


class ApiVersion(Struct, gc=False):
    api_key: I16 = 0
    min_version: I16 = 0
    max_version: I16 = 0


class SupportedFeatureKey(Struct, gc=False):
    name: str = ""
    min_version: I16 = 0
    max_version: I16 = 0


class FinalizedFeatureKey(Struct, gc=False):
    name: str = ""
    max_version_level: I16 = 0
    min_version_level: I16 = 0


class ApiVersionsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=18, kind="response")
    error_code: I16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Annotated[I32, versions("1+")] = 0
    supported_features: Annotated[list[SupportedFeatureKey], tagged(0, "3+")] = []
    finalized_features_epoch: Annotated[I64, tagged(1, "3+")] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], tagged(2, "3+")] = []
    zk_migration_ready: Annotated[bool, tagged(3, "3+")] = False
