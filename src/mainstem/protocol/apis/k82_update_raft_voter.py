"""UpdateRaftVoter (key 82): a voter makes its listeners and kraft.version range known to the leader."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, U16, ApiMessage, Uuid, nullable, tagged
from mainstem.protocol.uuids import ZERO_UUID


class Listener(Struct, gc=False):
    name: str = ""
    host: str = ""
    port: U16 = 0


class KRaftVersionFeature(Struct, frozen=True, gc=False):
    min_supported_version: I16 = 0
    max_supported_version: I16 = 0


class UpdateRaftVoterRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=82, kind="request")
    cluster_id: Annotated[str | None, nullable("0+")] = ""
    current_leader_epoch: I32 = 0
    voter_id: I32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    listeners: list[Listener] = []
    k_raft_version_feature: KRaftVersionFeature = KRaftVersionFeature()


class CurrentLeader(Struct, gc=False):
    leader_id: I32 = -1
    leader_epoch: I32 = -1
    host: str = ""
    port: I32 = 0


class UpdateRaftVoterResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=82, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    current_leader: Annotated[CurrentLeader | None, tagged(0, "0+")] = None
