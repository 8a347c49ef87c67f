"""RenewDelegationToken (key 39): extend the life of a delegation token."""

from typing import ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage


class RenewDelegationTokenRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=39, kind="request")
    hmac: bytes = b""
    renew_period_ms: I64 = 0


class RenewDelegationTokenResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=39, kind="response")
    error_code: I16 = 0
    expiry_timestamp_ms: I64 = 0
    throttle_time_ms: I32 = 0
