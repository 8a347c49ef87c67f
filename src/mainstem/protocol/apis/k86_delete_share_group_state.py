"""DeleteShareGroupState (key 86): delete the stored state of share partitions."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, Uuid, nullable
from mainstem.protocol.uuids import ZERO_UUID


class PartitionData(Struct, gc=False):
    partition: I32 = 0


class DeleteStateData(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


class DeleteShareGroupStateRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=86, kind="request")
    group_id: str = ""
    topics: list[DeleteStateData] = []


class PartitionResult(Struct, gc=False):
    partition: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None


class DeleteStateResult(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionResult] = []


class DeleteShareGroupStateResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=86, kind="response")
    results: list[DeleteStateResult] = []
