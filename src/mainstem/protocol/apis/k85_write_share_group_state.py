"""WriteShareGroupState (key 85): store changed state of share partitions."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, I64, ApiMessage, Uuid, nullable, versions
from mainstem.protocol.uuids import ZERO_UUID


class StateBatch(Struct, gc=False):
    first_offset: I64 = 0
    last_offset: I64 = 0
    delivery_state: I8 = 0
    delivery_count: I16 = 0


class PartitionData(Struct, gc=False):
    partition: I32 = 0
    state_epoch: I32 = 0
    leader_epoch: I32 = 0
    start_offset: I64 = 0
    delivery_complete_count: Annotated[I32, versions("1+")] = -1
    state_batches: list[StateBatch] = []


class WriteStateData(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


class WriteShareGroupStateRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=85, kind="request")
    group_id: str = ""
    topics: list[WriteStateData] = []


class PartitionResult(Struct, gc=False):
    partition: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None


class WriteStateResult(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = []


class WriteShareGroupStateResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=85, kind="response")
    results: list[WriteStateResult] = []
