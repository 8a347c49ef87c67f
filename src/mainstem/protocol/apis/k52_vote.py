"""Vote (key 52): a replica asks a voter for its vote in an epoch of the metadata log.

v1 names voters by their directory ids too (KIP-853); v2 can ask whether a vote would be given (KIP-996).
"""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, U16, ApiMessage, Uuid, nullable, tagged, versions
from mainstem.protocol.uuids import ZERO_UUID


class PartitionData(Struct, gc=False):
    partition_index: I32 = 0
    replica_epoch: I32 = 0
    replica_id: I32 = 0
    replica_directory_id: Annotated[Uuid, versions("1+")] = ZERO_UUID
    voter_directory_id: Annotated[Uuid, versions("1+")] = ZERO_UUID
    last_offset_epoch: I32 = 0
    last_offset: I64 = 0
    pre_vote: Annotated[bool, versions("2+")] = False


class TopicData(Struct, gc=False):
    topic_name: str = ""
    partitions: list[PartitionData] = []


class VoteRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=52, kind="request")
    cluster_id: Annotated[str | None, nullable("0+")] = None
    voter_id: Annotated[I32, versions("1+")] = -1
    topics: list[TopicData] = []


class ResponsePartitionData(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0
    leader_id: I32 = 0
    leader_epoch: I32 = 0
    vote_granted: bool = False


class ResponseTopicData(Struct, gc=False):
    topic_name: str = ""
    partitions: list[ResponsePartitionData] = []


class NodeEndpoint(Struct, gc=False):
    node_id: I32 = 0
    host: str = ""
    port: U16 = 0


class VoteResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=52, kind="response")
    error_code: I16 = 0
    topics: list[ResponseTopicData] = []
    node_endpoints: Annotated[list[NodeEndpoint], versions("1+"), tagged(0, "1+")] = []
