"""DescribeTopicPartitions (key 75): topics and partitions page by page, with eligible leader replicas."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, Uuid, nullable
from mainstem.protocol.uuids import ZERO_UUID


class TopicRequest(Struct, gc=False):
    name: str = ""


class Cursor(Struct, gc=False):
    topic_name: str = ""
    partition_index: I32 = 0


class DescribeTopicPartitionsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=75, kind="request")
    topics: list[TopicRequest] = []
    response_partition_limit: I32 = 2000
    cursor: Annotated[Cursor | None, nullable("0+")] = None


class DescribeTopicPartitionsResponsePartition(Struct, gc=False):
    error_code: I16 = 0
    partition_index: I32 = 0
    leader_id: I32 = 0
    leader_epoch: I32 = -1
    replica_nodes: list[I32] = []
    isr_nodes: list[I32] = []
    eligible_leader_replicas: Annotated[list[I32] | None, nullable("0+")] = None
    last_known_elr: Annotated[list[I32] | None, nullable("0+")] = None
    offline_replicas: list[I32] = []


class DescribeTopicPartitionsResponseTopic(Struct, gc=False):
    error_code: I16 = 0
    name: Annotated[str | None, nullable("0+")] = ""
    topic_id: Uuid = ZERO_UUID
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    topic_authorized_operations: I32 = -2147483648


class DescribeTopicPartitionsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=75, kind="response")
    throttle_time_ms: I32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Annotated[Cursor | None, nullable("0+")] = None
