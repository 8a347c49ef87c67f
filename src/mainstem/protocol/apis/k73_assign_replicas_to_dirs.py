"""AssignReplicasToDirs (key 73): a broker says in which of its log directories its replicas are."""

from typing import ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, Uuid
from mainstem.protocol.uuids import ZERO_UUID


class PartitionData(Struct, gc=False):
    partition_index: I32 = 0


class TopicData(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


class DirectoryData(Struct, gc=False):
    id: Uuid = ZERO_UUID
    topics: list[TopicData] = []


class AssignReplicasToDirsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=73, kind="request")
    broker_id: I32 = 0
    broker_epoch: I64 = -1
    directories: list[DirectoryData] = []


class ResponsePartitionData(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0


class ResponseTopicData(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[ResponsePartitionData] = []


class ResponseDirectoryData(Struct, gc=False):
    id: Uuid = ZERO_UUID
    topics: list[ResponseTopicData] = []


class AssignReplicasToDirsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=73, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    directories: list[ResponseDirectoryData] = []
