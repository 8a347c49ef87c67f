"""ControllerRegistration (key 70): a controller makes its listeners and features known to the active one."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, U16, ApiMessage, Uuid, nullable
from mainstem.protocol.uuids import ZERO_UUID


class Listener(Struct, gc=False):
    name: str = ""
    host: str = ""
    port: U16 = 0
    security_protocol: I16 = 0


class Feature(Struct, gc=False):
    name: str = ""
    min_supported_version: I16 = 0
    max_supported_version: I16 = 0


class ControllerRegistrationRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=70, kind="request")
    controller_id: I32 = 0
    incarnation_id: Uuid = ZERO_UUID
    zk_migration_ready: bool = False
    listeners: list[Listener] = []
    features: list[Feature] = []


class ControllerRegistrationResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=70, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
