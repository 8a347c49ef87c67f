"""StreamsGroupHeartbeat (key 88): join, keep alive and assign tasks to a member of a streams group."""

from typing import Annotated, ClassVar

from msgspec import Struct, field

from mainstem.protocol.schema import I8, I16, I32, I64, U16, ApiMessage, nullable


class KeyValue(Struct, gc=False):
    key: str = ""
    value: str = ""


class TopicInfo(Struct, gc=False):
    name: str = ""
    partitions: I32 = 0
    replication_factor: I16 = 0
    topic_configs: list[KeyValue] = []


class CopartitionGroup(Struct, gc=False):
    source_topics: list[I16] = []
    source_topic_regex: list[I16] = []
    repartition_source_topics: list[I16] = []


class Subtopology(Struct, gc=False):
    subtopology_id: str = ""
    source_topics: list[str] = []
    source_topic_regex: list[str] = []
    state_changelog_topics: list[TopicInfo] = []
    repartition_sink_topics: list[str] = []
    repartition_source_topics: list[TopicInfo] = []
    copartition_groups: list[CopartitionGroup] = []


class Topology(Struct, gc=False):
    epoch: I32 = 0
    subtopologies: list[Subtopology] = []


class TaskIds(Struct, gc=False):
    subtopology_id: str = ""
    partitions: list[I32] = []


class Endpoint(Struct, gc=False):
    host: str = ""
    port: U16 = 0


class TaskOffset(Struct, gc=False):
    subtopology_id: str = ""
    partition: I32 = 0
    offset: I64 = 0


class StreamsGroupHeartbeatRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=88, kind="request")
    group_id: str = ""
    member_id: str = ""
    member_epoch: I32 = 0
    endpoint_information_epoch: I32 = 0
    instance_id: Annotated[str | None, nullable("0+")] = None
    rack_id: Annotated[str | None, nullable("0+")] = None
    rebalance_timeout_ms: I32 = -1
    topology: Annotated[Topology | None, nullable("0+")] = None
    active_tasks: Annotated[list[TaskIds] | None, nullable("0+")] = None
    standby_tasks: Annotated[list[TaskIds] | None, nullable("0+")] = None
    warmup_tasks: Annotated[list[TaskIds] | None, nullable("0+")] = None
    process_id: Annotated[str | None, nullable("0+")] = None
    user_endpoint: Annotated[Endpoint | None, nullable("0+")] = None
    client_tags: Annotated[list[KeyValue] | None, nullable("0+")] = None
    task_offsets: Annotated[list[TaskOffset] | None, nullable("0+")] = None
    task_end_offsets: Annotated[list[TaskOffset] | None, nullable("0+")] = None
    shutdown_application: bool = False


class Status(Struct, gc=False):
    status_code: I8 = 0
    status_detail: str = ""


class TopicPartition(Struct, gc=False):
    topic: str = ""
    partitions: list[I32] = []


class EndpointToPartitions(Struct, gc=False):
    user_endpoint: Endpoint = field(default_factory=Endpoint)
    active_partitions: list[TopicPartition] = []
    standby_partitions: list[TopicPartition] = []


class StreamsGroupHeartbeatResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=88, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None
    member_id: str = ""
    member_epoch: I32 = 0
    heartbeat_interval_ms: I32 = 0
    acceptable_recovery_lag: I32 = 0
    task_offset_interval_ms: I32 = 0
    status: Annotated[list[Status] | None, nullable("0+")] = []
    active_tasks: Annotated[list[TaskIds] | None, nullable("0+")] = None
    standby_tasks: Annotated[list[TaskIds] | None, nullable("0+")] = None
    warmup_tasks: Annotated[list[TaskIds] | None, nullable("0+")] = None
    endpoint_information_epoch: I32 = 0
    partitions_by_user_endpoint: Annotated[list[EndpointToPartitions] | None, nullable("0+")] = None
