"""OffsetCommit (key 8): store a group's positions. From v10 topics are named by id."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, Uuid, nullable, versions
from mainstem.protocol.uuids import ZERO_UUID


class OffsetCommitRequestPartition(Struct, gc=False):
    partition_index: I32 = 0
    committed_offset: I64 = 0
    committed_leader_epoch: Annotated[I32, versions("6+")] = -1
    committed_metadata: Annotated[str | None, nullable("0+")] = ""


class OffsetCommitRequestTopic(Struct, gc=False):
    name: Annotated[str, versions("0-9")] = ""
    topic_id: Annotated[Uuid, versions("10+")] = ZERO_UUID
    partitions: list[OffsetCommitRequestPartition] = []


class OffsetCommitRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=8, kind="request")
    group_id: str = ""
    generation_id_or_member_epoch: I32 = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, versions("7+"), nullable("7+")] = None
    retention_time_ms: Annotated[I64, versions("2-4")] = -1
    topics: list[OffsetCommitRequestTopic] = []


class OffsetCommitResponsePartition(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0


class OffsetCommitResponseTopic(Struct, gc=False):
    name: Annotated[str, versions("0-9")] = ""
    topic_id: Annotated[Uuid, versions("10+")] = ZERO_UUID
    partitions: list[OffsetCommitResponsePartition] = []


class OffsetCommitResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=8, kind="response")
    throttle_time_ms: Annotated[I32, versions("3+")] = 0
    topics: list[OffsetCommitResponseTopic] = []
