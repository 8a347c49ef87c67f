"""OffsetDelete (key 47): delete a group's stored positions for single partitions."""

from typing import ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage


class OffsetDeleteRequestPartition(Struct, gc=False):
    partition_index: I32 = 0


class OffsetDeleteRequestTopic(Struct, gc=False):
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = []


class OffsetDeleteRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=47, kind="request")
    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = []


class OffsetDeleteResponsePartition(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0


class OffsetDeleteResponseTopic(Struct, gc=False):
    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = []


class OffsetDeleteResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=47, kind="response")
    error_code: I16 = 0
    throttle_time_ms: I32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
