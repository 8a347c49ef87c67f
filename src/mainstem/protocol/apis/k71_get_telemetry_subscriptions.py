"""GetTelemetrySubscriptions (key 71): which metrics a client is asked to push."""

from typing import ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, ApiMessage, Uuid
from mainstem.protocol.uuids import ZERO_UUID


class GetTelemetrySubscriptionsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=71, kind="request")
    client_instance_id: Uuid = ZERO_UUID


class GetTelemetrySubscriptionsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=71, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    client_instance_id: Uuid = ZERO_UUID
    subscription_id: I32 = 0
    accepted_compression_types: list[I8] = []
    push_interval_ms: I32 = 0
    telemetry_max_bytes: I32 = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = []
