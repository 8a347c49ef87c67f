"""ShareAcknowledge (key 79): acknowledge acquired records of a share group."""

from typing import Annotated, ClassVar

from msgspec import Struct, field

from mainstem.protocol.schema import I8, I16, I32, I64, ApiMessage, Uuid, nullable, versions
from mainstem.protocol.uuids import ZERO_UUID


class AcknowledgementBatch(Struct, gc=False):
    first_offset: I64 = 0
    last_offset: I64 = 0
    acknowledge_types: list[I8] = []


class AcknowledgePartition(Struct, gc=False):
    partition_index: I32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []


class AcknowledgeTopic(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[AcknowledgePartition] = []


class ShareAcknowledgeRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=79, kind="request")
    group_id: Annotated[str | None, nullable("0+")] = None
    member_id: Annotated[str | None, nullable("0+")] = ""
    share_session_epoch: I32 = 0
    is_renew_ack: Annotated[bool, versions("2+")] = False
    topics: list[AcknowledgeTopic] = []


class LeaderIdAndEpoch(Struct, gc=False):
    leader_id: I32 = 0
    leader_epoch: I32 = 0


class PartitionData(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)


class ShareAcknowledgeTopicResponse(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


class NodeEndpoint(Struct, gc=False):
    node_id: I32 = 0
    host: str = ""
    port: I32 = 0
    rack: Annotated[str | None, nullable("0+")] = None


class ShareAcknowledgeResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=79, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None
    acquisition_lock_timeout_ms: Annotated[I32, versions("2+")] = 0
    responses: list[ShareAcknowledgeTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
