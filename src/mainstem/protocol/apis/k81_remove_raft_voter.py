"""RemoveRaftVoter (key 81): remove a voter from the controller quorum."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, Uuid, nullable
from mainstem.protocol.uuids import ZERO_UUID


class RemoveRaftVoterRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=81, kind="request")
    cluster_id: Annotated[str | None, nullable("0+")] = ""
    voter_id: I32 = 0
    voter_directory_id: Uuid = ZERO_UUID


class RemoveRaftVoterResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=81, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
