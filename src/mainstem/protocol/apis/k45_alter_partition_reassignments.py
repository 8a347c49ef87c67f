"""AlterPartitionReassignments (key 45): start or cancel moves of partitions to other brokers."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, nullable, versions


class ReassignablePartition(Struct, gc=False):
    partition_index: I32 = 0
    replicas: Annotated[list[I32] | None, nullable("0+")] = None


class ReassignableTopic(Struct, gc=False):
    name: str = ""
    partitions: list[ReassignablePartition] = []


class AlterPartitionReassignmentsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=45, kind="request")
    timeout_ms: I32 = 60000
    allow_replication_factor_change: Annotated[bool, versions("1+")] = True
    topics: list[ReassignableTopic] = []


class ReassignablePartitionResponse(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""


class ReassignableTopicResponse(Struct, gc=False):
    name: str = ""
    partitions: list[ReassignablePartitionResponse] = []


class AlterPartitionReassignmentsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=45, kind="response")
    throttle_time_ms: I32 = 0
    allow_replication_factor_change: Annotated[bool, versions("1+")] = True
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
    responses: list[ReassignableTopicResponse] = []
