"""PushTelemetry (key 72): a client's metrics, as opaque bytes."""

from typing import ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, ApiMessage, Uuid
from mainstem.protocol.uuids import ZERO_UUID


class PushTelemetryRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=72, kind="request")
    client_instance_id: Uuid = ZERO_UUID
    subscription_id: I32 = 0
    terminating: bool = False
    compression_type: I8 = 0
    metrics: bytes = b""


class PushTelemetryResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=72, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
