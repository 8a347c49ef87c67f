"""ShareGroupHeartbeat (key 76): join, keep alive and assign a member of a share group."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, Uuid, nullable
from mainstem.protocol.uuids import ZERO_UUID


class ShareGroupHeartbeatRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=76, kind="request")
    group_id: str = ""
    member_id: str = ""
    member_epoch: I32 = 0
    rack_id: Annotated[str | None, nullable("0+")] = None
    subscribed_topic_names: Annotated[list[str] | None, nullable("0+")] = None


class TopicPartitions(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[I32] = []


class Assignment(Struct, gc=False):
    topic_partitions: list[TopicPartitions] = []


class ShareGroupHeartbeatResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=76, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None
    member_id: Annotated[str | None, nullable("0+")] = None
    member_epoch: I32 = 0
    heartbeat_interval_ms: I32 = 0
    assignment: Annotated[Assignment | None, nullable("0+")] = None
