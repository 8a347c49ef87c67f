"""EndTxn (key 26): commit or abort a transaction. From v5 the answer carries the next producer epoch."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, versions


class EndTxnRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=26, kind="request")
    transactional_id: str = ""
    producer_id: I64 = 0
    producer_epoch: I16 = 0
    committed: bool = False


class EndTxnResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=26, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    producer_id: Annotated[I64, versions("5+")] = -1
    producer_epoch: Annotated[I16, versions("5+")] = -1
