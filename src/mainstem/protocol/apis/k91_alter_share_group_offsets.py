"""AlterShareGroupOffsets (key 91): set the start offsets of an empty share group."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, Uuid, nullable
from mainstem.protocol.uuids import ZERO_UUID


class AlterShareGroupOffsetsRequestPartition(Struct, gc=False):
    partition_index: I32 = 0
    start_offset: I64 = 0


class AlterShareGroupOffsetsRequestTopic(Struct, gc=False):
    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = []


class AlterShareGroupOffsetsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=91, kind="request")
    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = []


class AlterShareGroupOffsetsResponsePartition(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None


class AlterShareGroupOffsetsResponseTopic(Struct, gc=False):
    topic_name: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[AlterShareGroupOffsetsResponsePartition] = []


class AlterShareGroupOffsetsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=91, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = []
