"""DescribeQuorum (key 55): leader, voters and observers of a raft partition."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, U16, ApiMessage, Uuid, nullable, versions
from mainstem.protocol.uuids import ZERO_UUID


class PartitionData(Struct, gc=False):
    partition_index: I32 = 0


class TopicData(Struct, gc=False):
    topic_name: str = ""
    partitions: list[PartitionData] = []


class DescribeQuorumRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=55, kind="request")
    topics: list[TopicData] = []


class ReplicaState(Struct, gc=False):
    replica_id: I32 = 0
    replica_directory_id: Annotated[Uuid, versions("2+")] = ZERO_UUID
    log_end_offset: I64 = 0
    last_fetch_timestamp: Annotated[I64, versions("1+")] = -1
    last_caught_up_timestamp: Annotated[I64, versions("1+")] = -1


class ResponsePartitionData(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, versions("2+"), nullable("2+")] = ""
    leader_id: I32 = 0
    leader_epoch: I32 = 0
    high_watermark: I64 = 0
    current_voters: list[ReplicaState] = []
    observers: list[ReplicaState] = []


class ResponseTopicData(Struct, gc=False):
    topic_name: str = ""
    partitions: list[ResponsePartitionData] = []


class Listener(Struct, gc=False):
    name: str = ""
    host: str = ""
    port: U16 = 0


class Node(Struct, gc=False):
    node_id: I32 = 0
    listeners: list[Listener] = []


class DescribeQuorumResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=55, kind="response")
    error_code: I16 = 0
    error_message: Annotated[str | None, versions("2+"), nullable("2+")] = ""
    topics: list[ResponseTopicData] = []
    nodes: Annotated[list[Node], versions("2+")] = []
