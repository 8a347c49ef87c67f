"""InitializeShareGroupState (key 83): create the stored state of share partitions."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, Uuid, nullable
from mainstem.protocol.uuids import ZERO_UUID


class PartitionData(Struct, gc=False):
    partition: I32 = 0
    state_epoch: I32 = 0
    start_offset: I64 = 0


class InitializeStateData(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


class InitializeShareGroupStateRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=83, kind="request")
    group_id: str = ""
    topics: list[InitializeStateData] = []


class PartitionResult(Struct, gc=False):
    partition: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None


class InitializeStateResult(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = []


class InitializeShareGroupStateResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=83, kind="response")
    results: list[InitializeStateResult] = []
