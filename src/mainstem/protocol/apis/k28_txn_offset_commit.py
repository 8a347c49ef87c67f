"""TxnOffsetCommit (key 28): store a group's positions as part of a transaction."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, nullable, versions


class TxnOffsetCommitRequestPartition(Struct, gc=False):
    partition_index: I32 = 0
    committed_offset: I64 = 0
    committed_leader_epoch: Annotated[I32, versions("2+")] = -1
    committed_metadata: Annotated[str | None, nullable("0+")] = ""


class TxnOffsetCommitRequestTopic(Struct, gc=False):
    name: str = ""
    partitions: list[TxnOffsetCommitRequestPartition] = []


class TxnOffsetCommitRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=28, kind="request")
    transactional_id: str = ""
    group_id: str = ""
    producer_id: I64 = 0
    producer_epoch: I16 = 0
    generation_id: Annotated[I32, versions("3+")] = -1
    member_id: Annotated[str, versions("3+")] = ""
    group_instance_id: Annotated[str | None, versions("3+"), nullable("3+")] = None
    topics: list[TxnOffsetCommitRequestTopic] = []


class TxnOffsetCommitResponsePartition(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0


class TxnOffsetCommitResponseTopic(Struct, gc=False):
    name: str = ""
    partitions: list[TxnOffsetCommitResponsePartition] = []


class TxnOffsetCommitResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=28, kind="response")
    throttle_time_ms: I32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
