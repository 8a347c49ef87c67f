"""OffsetFetch (key 9): read stored positions, of several groups from v8, by topic id from v10."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, Uuid, nullable, versions
from mainstem.protocol.uuids import ZERO_UUID


class OffsetFetchRequestTopic(Struct, gc=False):
    name: str = ""
    partition_indexes: list[I32] = []


class OffsetFetchRequestTopics(Struct, gc=False):
    name: Annotated[str, versions("8-9")] = ""
    topic_id: Annotated[Uuid, versions("10+")] = ZERO_UUID
    partition_indexes: list[I32] = []


class OffsetFetchRequestGroup(Struct, gc=False):
    group_id: str = ""
    member_id: Annotated[str | None, versions("9+"), nullable("9+")] = None
    member_epoch: Annotated[I32, versions("9+")] = -1
    topics: Annotated[list[OffsetFetchRequestTopics] | None, nullable("8+")] = []


class OffsetFetchRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=9, kind="request")
    group_id: Annotated[str, versions("0-7")] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, versions("0-7"), nullable("2-7")] = []
    groups: Annotated[list[OffsetFetchRequestGroup], versions("8+")] = []
    require_stable: Annotated[bool, versions("7+")] = False


class OffsetFetchResponsePartition(Struct, gc=False):
    partition_index: I32 = 0
    committed_offset: I64 = 0
    committed_leader_epoch: Annotated[I32, versions("5-7")] = -1
    metadata: Annotated[str | None, nullable("0-7")] = ""
    error_code: I16 = 0


class OffsetFetchResponseTopic(Struct, gc=False):
    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = []


class OffsetFetchResponsePartitions(Struct, gc=False):
    partition_index: I32 = 0
    committed_offset: I64 = 0
    committed_leader_epoch: I32 = -1
    metadata: Annotated[str | None, nullable("8+")] = ""
    error_code: I16 = 0


class OffsetFetchResponseTopics(Struct, gc=False):
    name: Annotated[str, versions("8-9")] = ""
    topic_id: Annotated[Uuid, versions("10+")] = ZERO_UUID
    partitions: list[OffsetFetchResponsePartitions] = []


class OffsetFetchResponseGroup(Struct, gc=False):
    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = []
    error_code: I16 = 0


class OffsetFetchResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=9, kind="response")
    throttle_time_ms: Annotated[I32, versions("3+")] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], versions("0-7")] = []
    error_code: Annotated[I16, versions("2-7")] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], versions("8+")] = []
