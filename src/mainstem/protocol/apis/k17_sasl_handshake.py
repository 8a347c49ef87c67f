"""SaslHandshake (key 17): choose the SASL mechanism of the connection."""

from typing import ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, ApiMessage


class SaslHandshakeRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=17, kind="request")
    mechanism: str = ""


class SaslHandshakeResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=17, kind="response")
    error_code: I16 = 0
    mechanisms: list[str] = []
