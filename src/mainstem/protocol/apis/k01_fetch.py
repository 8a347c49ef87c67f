"""Fetch (key 1): read record batches, for consumers and followers. From v13 topics are named by id."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, I64, ApiMessage, Records, Uuid, nullable, tagged, versions
from mainstem.protocol.uuids import ZERO_UUID


class ReplicaState(Struct, gc=False):
    replica_id: I32 = -1
    replica_epoch: I64 = -1


class FetchPartition(Struct, gc=False):
    partition: I32 = 0
    current_leader_epoch: Annotated[I32, versions("9+")] = -1
    fetch_offset: I64 = 0
    last_fetched_epoch: Annotated[I32, versions("12+")] = -1
    log_start_offset: Annotated[I64, versions("5+")] = -1
    partition_max_bytes: I32 = 0
    replica_directory_id: Annotated[Uuid, tagged(0, "17+")] = ZERO_UUID
    high_watermark: Annotated[I64, tagged(1, "18+")] = 9223372036854775807


class FetchTopic(Struct, gc=False):
    topic: Annotated[str, versions("0-12")] = ""
    topic_id: Annotated[Uuid, versions("13+")] = ZERO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Struct, gc=False):
    topic: Annotated[str, versions("7-12")] = ""
    topic_id: Annotated[Uuid, versions("13+")] = ZERO_UUID
    partitions: list[I32] = []


class FetchRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=1, kind="request")
    cluster_id: Annotated[str | None, tagged(0, "12+"), nullable("12+")] = None
    replica_id: Annotated[I32, versions("0-14")] = -1
    replica_state: Annotated[ReplicaState | None, tagged(1, "15+")] = None
    max_wait_ms: I32 = 0
    min_bytes: I32 = 0
    max_bytes: I32 = 0x7FFFFFFF
    isolation_level: I8 = 0
    session_id: Annotated[I32, versions("7+")] = 0
    session_epoch: Annotated[I32, versions("7+")] = -1
    topics: list[FetchTopic] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], versions("7+")] = []
    rack_id: Annotated[str, versions("11+")] = ""


class EpochEndOffset(Struct, gc=False):
    epoch: I32 = -1
    end_offset: I64 = -1


class LeaderIdAndEpoch(Struct, gc=False):
    leader_id: I32 = -1
    leader_epoch: I32 = -1


class SnapshotId(Struct, gc=False):
    end_offset: I64 = -1
    epoch: I32 = -1


class AbortedTransaction(Struct, gc=False):
    producer_id: I64 = 0
    first_offset: I64 = 0


class PartitionData(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0
    high_watermark: I64 = 0
    last_stable_offset: I64 = -1
    log_start_offset: Annotated[I64, versions("5+")] = -1
    diverging_epoch: Annotated[EpochEndOffset | None, tagged(0, "12+")] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, tagged(1, "12+")] = None
    snapshot_id: Annotated[SnapshotId | None, tagged(2, "12+")] = None
    aborted_transactions: Annotated[list[AbortedTransaction] | None, nullable("4+")] = []
    preferred_read_replica: Annotated[I32, versions("11+")] = -1
    records: Annotated[Records | None, nullable("0+")] = None


class FetchableTopicResponse(Struct, gc=False):
    topic: Annotated[str, versions("0-12")] = ""
    topic_id: Annotated[Uuid, versions("13+")] = ZERO_UUID
    partitions: list[PartitionData] = []


class NodeEndpoint(Struct, gc=False):
    node_id: I32 = 0
    host: str = ""
    port: I32 = 0
    rack: Annotated[str | None, nullable("16+")] = None


class FetchResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=1, kind="response")
    throttle_time_ms: I32 = 0
    error_code: Annotated[I16, versions("7+")] = 0
    session_id: Annotated[I32, versions("7+")] = 0
    responses: list[FetchableTopicResponse] = []
    node_endpoints: Annotated[list[NodeEndpoint], tagged(0, "16+")] = []
