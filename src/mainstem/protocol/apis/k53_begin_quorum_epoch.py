"""BeginQuorumEpoch (key 53): the leader of a new epoch of the metadata log makes itself known to a voter.

v1 names the voter by its directory id too and carries the leader's endpoints (KIP-853).
"""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, U16, ApiMessage, Uuid, nullable, tagged, versions
from mainstem.protocol.uuids import ZERO_UUID


class PartitionData(Struct, gc=False):
    partition_index: I32 = 0
    voter_directory_id: Annotated[Uuid, versions("1+")] = ZERO_UUID
    leader_id: I32 = 0
    leader_epoch: I32 = 0


class TopicData(Struct, gc=False):
    topic_name: str = ""
    partitions: list[PartitionData] = []


class LeaderEndpoint(Struct, gc=False):
    name: str = ""
    host: str = ""
    port: U16 = 0


class BeginQuorumEpochRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=53, kind="request")
    cluster_id: Annotated[str | None, nullable("0+")] = None
    voter_id: Annotated[I32, versions("1+")] = -1
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


class BeginQuorumEpochResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=53, kind="response")
    error_code: I16 = 0
    topics: list[ResponseTopicData] = []
    node_endpoints: Annotated[list[NodeEndpoint], versions("1+"), tagged(0, "1+")] = []
