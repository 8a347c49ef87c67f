"""FetchSnapshot (key 59): read a part of a snapshot of the metadata log."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, U16, ApiMessage, Records, Uuid, nullable, tagged, versions
from mainstem.protocol.uuids import ZERO_UUID


class SnapshotId(Struct, frozen=True, gc=False):
    end_offset: I64 = 0
    epoch: I32 = 0


class PartitionSnapshot(Struct, gc=False):
    partition: I32 = 0
    current_leader_epoch: I32 = 0
    snapshot_id: SnapshotId = SnapshotId()
    position: I64 = 0
    replica_directory_id: Annotated[Uuid, versions("1+"), tagged(0, "1+")] = ZERO_UUID


class TopicSnapshot(Struct, gc=False):
    name: str = ""
    partitions: list[PartitionSnapshot] = []


class FetchSnapshotRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=59, kind="request")
    cluster_id: Annotated[str | None, nullable("0+"), tagged(0, "0+")] = None
    replica_id: I32 = -1
    max_bytes: I32 = 0x7FFFFFFF
    topics: list[TopicSnapshot] = []


class LeaderIdAndEpoch(Struct, gc=False):
    leader_id: I32 = 0
    leader_epoch: I32 = 0


class ResponsePartitionSnapshot(Struct, gc=False):
    index: I32 = 0
    error_code: I16 = 0
    snapshot_id: SnapshotId = SnapshotId()
    current_leader: Annotated[LeaderIdAndEpoch | None, tagged(0, "0+")] = None
    size: I64 = 0
    position: I64 = 0
    unaligned_records: Records = b""


class ResponseTopicSnapshot(Struct, gc=False):
    name: str = ""
    partitions: list[ResponsePartitionSnapshot] = []


class NodeEndpoint(Struct, gc=False):
    node_id: I32 = 0
    host: str = ""
    port: U16 = 0


class FetchSnapshotResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=59, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    topics: list[ResponseTopicSnapshot] = []
    node_endpoints: Annotated[list[NodeEndpoint], versions("1+"), tagged(0, "1+")] = []
