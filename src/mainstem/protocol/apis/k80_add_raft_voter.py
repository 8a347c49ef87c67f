"""AddRaftVoter (key 80): add a voter to the controller quorum."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, U16, ApiMessage, Uuid, nullable, versions
from mainstem.protocol.uuids import ZERO_UUID


class Listener(Struct, gc=False):
    name: str = ""
    host: str = ""
    port: U16 = 0


class AddRaftVoterRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=80, kind="request")
    cluster_id: Annotated[str | None, nullable("0+")] = ""
    timeout_ms: I32 = 0
    voter_id: I32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    listeners: list[Listener] = []
    ack_when_committed: Annotated[bool, versions("1+")] = True


class AddRaftVoterResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=80, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
