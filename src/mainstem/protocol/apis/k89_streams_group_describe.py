"""StreamsGroupDescribe (key 89): state, topology and members of streams groups."""

from typing import Annotated, ClassVar

from msgspec import Struct, field

from mainstem.protocol.schema import I16, I32, I64, U16, ApiMessage, nullable


class StreamsGroupDescribeRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=89, kind="request")
    group_ids: list[str] = []
    include_authorized_operations: bool = False


class KeyValue(Struct, gc=False):
    key: str = ""
    value: str = ""


class TopicInfo(Struct, gc=False):
    name: str = ""
    partitions: I32 = 0
    replication_factor: I16 = 0
    topic_configs: list[KeyValue] = []


class Subtopology(Struct, gc=False):
    subtopology_id: str = ""
    source_topics: list[str] = []
    repartition_sink_topics: list[str] = []
    state_changelog_topics: list[TopicInfo] = []
    repartition_source_topics: list[TopicInfo] = []


class Topology(Struct, gc=False):
    epoch: I32 = 0
    subtopologies: Annotated[list[Subtopology] | None, nullable("0+")] = None


class Endpoint(Struct, gc=False):
    host: str = ""
    port: U16 = 0


class TaskOffset(Struct, gc=False):
    subtopology_id: str = ""
    partition: I32 = 0
    offset: I64 = 0


class TaskIds(Struct, gc=False):
    subtopology_id: str = ""
    partitions: list[I32] = []


class Assignment(Struct, gc=False):
    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []


class Member(Struct, gc=False):
    member_id: str = ""
    member_epoch: I32 = 0
    instance_id: Annotated[str | None, nullable("0+")] = None
    rack_id: Annotated[str | None, nullable("0+")] = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: I32 = 0
    process_id: str = ""
    user_endpoint: Annotated[Endpoint | None, nullable("0+")] = None
    client_tags: list[KeyValue] = []
    task_offsets: list[TaskOffset] = []
    task_end_offsets: list[TaskOffset] = []
    assignment: Assignment = field(default_factory=Assignment)
    target_assignment: Assignment = field(default_factory=Assignment)
    is_classic: bool = False


class DescribedGroup(Struct, gc=False):
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: I32 = 0
    assignment_epoch: I32 = 0
    topology: Annotated[Topology | None, nullable("0+")] = None
    members: list[Member] = []
    authorized_operations: I32 = -2147483648


class StreamsGroupDescribeResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=89, kind="response")
    throttle_time_ms: I32 = 0
    groups: list[DescribedGroup] = []
