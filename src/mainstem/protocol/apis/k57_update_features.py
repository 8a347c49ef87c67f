"""UpdateFeatures (key 57): raise or lower the cluster's feature levels."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, ApiMessage, nullable, versions


class FeatureUpdateKey(Struct, gc=False):
    feature: str = ""
    max_version_level: I16 = 0
    allow_downgrade: Annotated[bool, versions("0")] = False
    upgrade_type: Annotated[I8, versions("1+")] = 1


class UpdateFeaturesRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=57, kind="request")
    timeout_ms: I32 = 60000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: Annotated[bool, versions("1+")] = False


class UpdatableFeatureResult(Struct, gc=False):
    feature: str = ""
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""


class UpdateFeaturesResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=57, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
    results: Annotated[list[UpdatableFeatureResult], versions("0-1")] = []
