"""ListOffsets (key 2): look offsets up by timestamp or by a special value such as earliest or latest."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, I64, ApiMessage, versions


class ListOffsetsPartition(Struct, gc=False):
    partition_index: I32 = 0
    current_leader_epoch: Annotated[I32, versions("4+")] = -1
    timestamp: I64 = 0


class ListOffsetsTopic(Struct, gc=False):
    name: str = ""
    partitions: list[ListOffsetsPartition] = []


class ListOffsetsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=2, kind="request")
    replica_id: I32 = 0
    isolation_level: Annotated[I8, versions("2+")] = 0
    topics: list[ListOffsetsTopic] = []
    timeout_ms: Annotated[I32, versions("10+")] = 0


class ListOffsetsPartitionResponse(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0
    timestamp: I64 = -1
    offset: I64 = -1
    leader_epoch: Annotated[I32, versions("4+")] = -1


class ListOffsetsTopicResponse(Struct, gc=False):
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = []


class ListOffsetsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=2, kind="response")
    throttle_time_ms: Annotated[I32, versions("2+")] = 0
    topics: list[ListOffsetsTopicResponse] = []
