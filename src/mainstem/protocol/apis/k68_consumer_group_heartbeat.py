"""ConsumerGroupHeartbeat (key 68): join, keep alive and reconcile a member of a KIP-848 consumer group."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, Uuid, nullable, versions
from mainstem.protocol.uuids import ZERO_UUID


class TopicPartitions(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[I32] = []


class ConsumerGroupHeartbeatRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=68, kind="request")
    group_id: str = ""
    member_id: str = ""
    member_epoch: I32 = 0
    instance_id: Annotated[str | None, nullable("0+")] = None
    rack_id: Annotated[str | None, nullable("0+")] = None
    rebalance_timeout_ms: I32 = -1
    subscribed_topic_names: Annotated[list[str] | None, nullable("0+")] = None
    subscribed_topic_regex: Annotated[str | None, versions("1+"), nullable("1+")] = None
    server_assignor: Annotated[str | None, nullable("0+")] = None
    topic_partitions: Annotated[list[TopicPartitions] | None, nullable("0+")] = None


class Assignment(Struct, gc=False):
    topic_partitions: list[TopicPartitions] = []


class ConsumerGroupHeartbeatResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=68, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None
    member_id: Annotated[str | None, nullable("0+")] = None
    member_epoch: I32 = 0
    heartbeat_interval_ms: I32 = 0
    assignment: Annotated[Assignment | None, nullable("0+")] = None
