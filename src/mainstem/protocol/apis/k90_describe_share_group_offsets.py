"""DescribeShareGroupOffsets (key 90): start offsets of share groups."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, Uuid, nullable, versions
from mainstem.protocol.uuids import ZERO_UUID


class DescribeShareGroupOffsetsRequestTopic(Struct, gc=False):
    topic_name: str = ""
    partitions: list[I32] = []


class DescribeShareGroupOffsetsRequestGroup(Struct, gc=False):
    group_id: str = ""
    topics: Annotated[list[DescribeShareGroupOffsetsRequestTopic] | None, nullable("0+")] = []


class DescribeShareGroupOffsetsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=90, kind="request")
    groups: list[DescribeShareGroupOffsetsRequestGroup] = []


class DescribeShareGroupOffsetsResponsePartition(Struct, gc=False):
    partition_index: I32 = 0
    start_offset: I64 = 0
    leader_epoch: I32 = 0
    lag: Annotated[I64, versions("1+")] = -1
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None


class DescribeShareGroupOffsetsResponseTopic(Struct, gc=False):
    topic_name: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = []


class DescribeShareGroupOffsetsResponseGroup(Struct, gc=False):
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = []
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None


class DescribeShareGroupOffsetsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=90, kind="response")
    throttle_time_ms: I32 = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
