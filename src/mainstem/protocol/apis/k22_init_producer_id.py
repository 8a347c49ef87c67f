"""InitProducerId (key 22): get a producer id and epoch for idempotent or transactional producing."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, nullable, versions


class InitProducerIdRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=22, kind="request")
    transactional_id: Annotated[str | None, nullable("0+")] = ""
    transaction_timeout_ms: I32 = 0
    producer_id: Annotated[I64, versions("3+")] = -1
    producer_epoch: Annotated[I16, versions("3+")] = -1


class InitProducerIdResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=22, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    producer_id: I64 = -1
    producer_epoch: I16 = 0
