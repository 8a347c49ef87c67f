"""ExpireDelegationToken (key 40): shorten the life of a delegation token or end it."""

from typing import ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage


class ExpireDelegationTokenRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=40, kind="request")
    hmac: bytes = b""
    expiry_time_period_ms: I64 = 0


class ExpireDelegationTokenResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=40, kind="response")
    error_code: I16 = 0
    expiry_timestamp_ms: I64 = 0
    throttle_time_ms: I32 = 0
