"""CreatePartitions (key 37): add partitions to topics."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, nullable


class CreatePartitionsAssignment(Struct, gc=False):
    broker_ids: list[I32] = []


class CreatePartitionsTopic(Struct, gc=False):
    name: str = ""
    count: I32 = 0
    assignments: Annotated[list[CreatePartitionsAssignment] | None, nullable("0+")] = []


class CreatePartitionsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=37, kind="request")
    topics: list[CreatePartitionsTopic] = []
    timeout_ms: I32 = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(Struct, gc=False):
    name: str = ""
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None


class CreatePartitionsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=37, kind="response")
    throttle_time_ms: I32 = 0
    results: list[CreatePartitionsTopicResult] = []
