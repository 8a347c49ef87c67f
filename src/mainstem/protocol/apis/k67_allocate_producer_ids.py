"""AllocateProducerIds (key 67): a broker gets a block of producer ids from the controller."""

from typing import ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage


class AllocateProducerIdsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=67, kind="request")
    broker_id: I32 = 0
    broker_epoch: I64 = -1


class AllocateProducerIdsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=67, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    producer_id_start: I64 = 0
    producer_id_len: I32 = 0
