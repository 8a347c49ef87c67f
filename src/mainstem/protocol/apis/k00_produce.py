"""Produce (key 0): append record batches to partitions. From v13 topics are named by id."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, Records, Uuid, nullable, tagged, versions
from mainstem.protocol.uuids import ZERO_UUID


class PartitionProduceData(Struct, gc=False):
    index: I32 = 0
    records: Annotated[Records | None, nullable("0+")] = None


class TopicProduceData(Struct, gc=False):
    name: Annotated[str, versions("0-12")] = ""
    topic_id: Annotated[Uuid, versions("13+")] = ZERO_UUID
    partition_data: list[PartitionProduceData] = []


class ProduceRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=0, kind="request")
    transactional_id: Annotated[str | None, nullable("3+")] = None
    acks: I16 = 0
    timeout_ms: I32 = 0
    topic_data: list[TopicProduceData] = []


class BatchIndexAndErrorMessage(Struct, gc=False):
    batch_index: I32 = 0
    batch_index_error_message: Annotated[str | None, nullable("8+")] = None


class LeaderIdAndEpoch(Struct, gc=False):
    leader_id: I32 = -1
    leader_epoch: I32 = -1


class PartitionProduceResponse(Struct, gc=False):
    index: I32 = 0
    error_code: I16 = 0
    base_offset: I64 = 0
    log_append_time_ms: I64 = -1
    log_start_offset: Annotated[I64, versions("5+")] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], versions("8+")] = []
    error_message: Annotated[str | None, versions("8+"), nullable("8+")] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, tagged(0, "10+")] = None


class TopicProduceResponse(Struct, gc=False):
    name: Annotated[str, versions("0-12")] = ""
    topic_id: Annotated[Uuid, versions("13+")] = ZERO_UUID
    partition_responses: list[PartitionProduceResponse] = []


class NodeEndpoint(Struct, gc=False):
    node_id: I32 = 0
    host: str = ""
    port: I32 = 0
    rack: Annotated[str | None, nullable("10+")] = None


class ProduceResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=0, kind="response")
    responses: list[TopicProduceResponse] = []
    throttle_time_ms: I32 = 0
    node_endpoints: Annotated[list[NodeEndpoint], tagged(0, "10+")] = []
