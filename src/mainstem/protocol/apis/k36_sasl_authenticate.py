"""SaslAuthenticate (key 36): one step of the SASL exchange."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I64, ApiMessage, nullable, versions


class SaslAuthenticateRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=36, kind="request")
    auth_bytes: bytes = b""


class SaslAuthenticateResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=36, kind="response")
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: Annotated[I64, versions("1+")] = 0
