"""ListPartitionReassignments (key 46): the moves of partitions that are under way."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, nullable


class ListPartitionReassignmentsTopics(Struct, gc=False):
    name: str = ""
    partition_indexes: list[I32] = []


class ListPartitionReassignmentsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=46, kind="request")
    timeout_ms: I32 = 60000
    topics: Annotated[list[ListPartitionReassignmentsTopics] | None, nullable("0+")] = None


class OngoingPartitionReassignment(Struct, gc=False):
    partition_index: I32 = 0
    replicas: list[I32] = []
    adding_replicas: list[I32] = []
    removing_replicas: list[I32] = []


class OngoingTopicReassignment(Struct, gc=False):
    name: str = ""
    partitions: list[OngoingPartitionReassignment] = []


class ListPartitionReassignmentsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=46, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
    topics: list[OngoingTopicReassignment] = []
