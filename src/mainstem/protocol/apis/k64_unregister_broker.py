"""UnregisterBroker (key 64): remove a broker's registration."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, nullable


class UnregisterBrokerRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=64, kind="request")
    broker_id: I32 = 0


class UnregisterBrokerResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=64, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
