"""EndQuorumEpoch (key 54): the leader of the metadata log resigns and names who should follow it.

v1 names successors by their directory ids too and carries the leader's endpoints (KIP-853).
"""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, U16, ApiMessage, Uuid, nullable, tagged, versions
from mainstem.protocol.uuids import ZERO_UUID


class ReplicaInfo(Struct, gc=False):
    candidate_id: I32 = 0
    candidate_directory_id: Uuid = ZERO_UUID


class PartitionData(Struct, gc=False):
    partition_index: I32 = 0
    leader_id: I32 = 0
    leader_epoch: I32 = 0
    preferred_successors: Annotated[list[I32], versions("0")] = []
    preferred_candidates: Annotated[list[ReplicaInfo], versions("1+")] = []


class TopicData(Struct, gc=False):
    topic_name: str = ""
    partitions: list[PartitionData] = []


class LeaderEndpoint(Struct, gc=False):
    name: str = ""
    host: str = ""
    port: U16 = 0


class EndQuorumEpochRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=54, kind="request")
    cluster_id: Annotated[str | None, nullable("0+")] = None
    topics: list[TopicData] = []
    leader_endpoints: Annotated[list[LeaderEndpoint], versions("1+")] = []


class ResponsePartitionData(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0
    leader_id: I32 = 0
    leader_epoch: I32 = 0


class ResponseTopicData(Struct, gc=False):
    topic_name: str = ""
    partitions: list[ResponsePartitionData] = []


class NodeEndpoint(Struct, gc=False):
    node_id: I32 = 0
    host: str = ""
    port: U16 = 0


class EndQuorumEpochResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=54, kind="response")
    error_code: I16 = 0
    topics: list[ResponseTopicData] = []
    node_endpoints: Annotated[list[NodeEndpoint], versions("1+"), tagged(0, "1+")] = []
