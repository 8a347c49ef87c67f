"""AddOffsetsToTxn (key 25): add a group's offsets partition to a transaction."""

from typing import ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage


class AddOffsetsToTxnRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=25, kind="request")
    transactional_id: str = ""
    producer_id: I64 = 0
    producer_epoch: I16 = 0
    group_id: str = ""


class AddOffsetsToTxnResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=25, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
