"""ElectLeaders (key 43): elect the preferred leader, or from v1 any replica, of partitions."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, ApiMessage, nullable, versions


class TopicPartitions(Struct, gc=False):
    topic: str = ""
    partitions: list[I32] = []


class ElectLeadersRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=43, kind="request")
    election_type: Annotated[I8, versions("1+")] = 0
    topic_partitions: Annotated[list[TopicPartitions] | None, nullable("0+")] = []
    timeout_ms: I32 = 60000


class PartitionResult(Struct, gc=False):
    partition_id: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""


class ReplicaElectionResult(Struct, gc=False):
    topic: str = ""
    partition_result: list[PartitionResult] = []


class ElectLeadersResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=43, kind="response")
    throttle_time_ms: I32 = 0
    error_code: Annotated[I16, versions("1+")] = 0
    replica_election_results: list[ReplicaElectionResult] = []
