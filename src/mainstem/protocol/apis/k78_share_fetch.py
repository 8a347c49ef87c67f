"""ShareFetch (key 78): acquire records for a share group member and acknowledge earlier ones."""

from typing import Annotated, ClassVar

from msgspec import Struct, field

from mainstem.protocol.schema import I8, I16, I32, I64, ApiMessage, Records, Uuid, nullable, versions
from mainstem.protocol.uuids import ZERO_UUID


class AcknowledgementBatch(Struct, gc=False):
    first_offset: I64 = 0
    last_offset: I64 = 0
    acknowledge_types: list[I8] = []


class FetchPartition(Struct, gc=False):
    partition_index: I32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []


class FetchTopic(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[I32] = []


class ShareFetchRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=78, kind="request")
    group_id: Annotated[str | None, nullable("0+")] = None
    member_id: Annotated[str | None, nullable("0+")] = ""
    share_session_epoch: I32 = 0
    max_wait_ms: I32 = 0
    min_bytes: I32 = 0
    max_bytes: I32 = 0x7FFFFFFF
    max_records: I32 = 0
    batch_size: I32 = 0
    share_acquire_mode: Annotated[I8, versions("2+")] = 0
    is_renew_ack: Annotated[bool, versions("2+")] = False
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = []


class LeaderIdAndEpoch(Struct, gc=False):
    leader_id: I32 = 0
    leader_epoch: I32 = 0


class AcquiredRecords(Struct, gc=False):
    first_offset: I64 = 0
    last_offset: I64 = 0
    delivery_count: I16 = 0


class PartitionData(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None
    acknowledge_error_code: I16 = 0
    acknowledge_error_message: Annotated[str | None, nullable("0+")] = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)
    records: Records | None = None
    acquired_records: list[AcquiredRecords] = []


class ShareFetchableTopicResponse(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


class NodeEndpoint(Struct, gc=False):
    node_id: I32 = 0
    host: str = ""
    port: I32 = 0
    rack: Annotated[str | None, nullable("0+")] = None


class ShareFetchResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=78, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None
    acquisition_lock_timeout_ms: I32 = 0
    responses: list[ShareFetchableTopicResponse] = []
    node_endpoints: list[NodeEndpoint] = []
