"""ShareGroupDescribe (key 77): state and members of share groups."""

from typing import Annotated, ClassVar

from msgspec import Struct, field

from mainstem.protocol.schema import I16, I32, ApiMessage, Uuid, nullable
from mainstem.protocol.uuids import ZERO_UUID


class ShareGroupDescribeRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=77, kind="request")
    group_ids: list[str] = []
    include_authorized_operations: bool = False


class TopicPartitions(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    partitions: list[I32] = []


class Assignment(Struct, gc=False):
    topic_partitions: list[TopicPartitions] = []


class Member(Struct, gc=False):
    member_id: str = ""
    rack_id: Annotated[str | None, nullable("0+")] = None
    member_epoch: I32 = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
    assignment: Assignment = field(default_factory=Assignment)


class DescribedGroup(Struct, gc=False):
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: I32 = 0
    assignment_epoch: I32 = 0
    assignor_name: str = ""
    members: list[Member] = []
    authorized_operations: I32 = -2147483648


class ShareGroupDescribeResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=77, kind="response")
    throttle_time_ms: I32 = 0
    groups: list[DescribedGroup] = []
