"""DescribeProducers (key 61): producers that a partition's log remembers."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, nullable


class TopicRequest(Struct, gc=False):
    name: str = ""
    partition_indexes: list[I32] = []


class DescribeProducersRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=61, kind="request")
    topics: list[TopicRequest] = []


class ProducerState(Struct, gc=False):
    producer_id: I64 = 0
    producer_epoch: I32 = 0
    last_sequence: I32 = -1
    last_timestamp: I64 = -1
    coordinator_epoch: I32 = 0
    current_txn_start_offset: I64 = -1


class PartitionResponse(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None
    active_producers: list[ProducerState] = []


class TopicResponse(Struct, gc=False):
    name: str = ""
    partitions: list[PartitionResponse] = []


class DescribeProducersResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=61, kind="response")
    throttle_time_ms: I32 = 0
    topics: list[TopicResponse] = []
