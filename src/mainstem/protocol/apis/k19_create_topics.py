"""CreateTopics (key 19): create topics, or only check whether they could be."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, ApiMessage, Uuid, nullable, tagged, versions
from mainstem.protocol.uuids import ZERO_UUID


class CreatableReplicaAssignment(Struct, gc=False):
    partition_index: I32 = 0
    broker_ids: list[I32] = []


class CreatableTopicConfig(Struct, gc=False):
    name: str = ""
    value: Annotated[str | None, nullable("0+")] = ""


class CreatableTopic(Struct, gc=False):
    name: str = ""
    num_partitions: I32 = 0
    replication_factor: I16 = 0
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []


class CreateTopicsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=19, kind="request")
    topics: list[CreatableTopic] = []
    timeout_ms: I32 = 60000
    validate_only: bool = False


class CreatableTopicConfigs(Struct, gc=False):
    name: str = ""
    value: Annotated[str | None, nullable("5+")] = ""
    read_only: bool = False
    config_source: I8 = -1
    is_sensitive: bool = False


class CreatableTopicResult(Struct, gc=False):
    name: str = ""
    topic_id: Annotated[Uuid, versions("7+")] = ZERO_UUID
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
    topic_config_error_code: Annotated[I16, tagged(0, "5+")] = 0
    num_partitions: Annotated[I32, versions("5+")] = -1
    replication_factor: Annotated[I16, versions("5+")] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, versions("5+"), nullable("5+")] = []


class CreateTopicsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=19, kind="response")
    throttle_time_ms: I32 = 0
    topics: list[CreatableTopicResult] = []
