"""AlterReplicaLogDirs (key 34): move replicas between the log directories of a broker."""

from typing import ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage


class AlterReplicaLogDirTopic(Struct, gc=False):
    name: str = ""
    partitions: list[I32] = []


class AlterReplicaLogDir(Struct, gc=False):
    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = []


class AlterReplicaLogDirsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=34, kind="request")
    dirs: list[AlterReplicaLogDir] = []


class AlterReplicaLogDirPartitionResult(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0


class AlterReplicaLogDirTopicResult(Struct, gc=False):
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


class AlterReplicaLogDirsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=34, kind="response")
    throttle_time_ms: I32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
