"""ReadShareGroupStateSummary (key 87): start offset and epochs of share partitions, without their batches."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, Uuid, nullable, versions
from mainstem.protocol.uuids import ZERO_UUID


class PartitionData(Struct, gc=False):
    partition: I32 = 0
    leader_epoch: I32 = 0


class ReadStateSummaryData(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


class ReadShareGroupStateSummaryRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=87, kind="request")
    group_id: str = ""
    topics: list[ReadStateSummaryData] = []


class PartitionResult(Struct, gc=False):
    partition: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None
    state_epoch: I32 = 0
    leader_epoch: I32 = 0
    start_offset: I64 = 0
    delivery_complete_count: Annotated[I32, versions("1+")] = -1


class ReadStateSummaryResult(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = []


class ReadShareGroupStateSummaryResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=87, kind="response")
    results: list[ReadStateSummaryResult] = []
