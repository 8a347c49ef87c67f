"""OffsetForLeaderEpoch (key 23): where the records of a leader epoch end, to find divergence."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, versions


class OffsetForLeaderPartition(Struct, gc=False):
    partition: I32 = 0
    current_leader_epoch: I32 = -1
    leader_epoch: I32 = 0


class OffsetForLeaderTopic(Struct, gc=False):
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = []


class OffsetForLeaderEpochRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=23, kind="request")
    replica_id: Annotated[I32, versions("3+")] = -2
    topics: list[OffsetForLeaderTopic] = []


class EpochEndOffset(Struct, gc=False):
    error_code: I16 = 0
    partition: I32 = 0
    leader_epoch: I32 = -1
    end_offset: I64 = -1


class OffsetForLeaderTopicResult(Struct, gc=False):
    topic: str = ""
    partitions: list[EpochEndOffset] = []


class OffsetForLeaderEpochResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=23, kind="response")
    throttle_time_ms: I32 = 0
    topics: list[OffsetForLeaderTopicResult] = []
