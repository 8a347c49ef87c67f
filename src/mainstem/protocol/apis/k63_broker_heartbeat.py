"""BrokerHeartbeat (key 63): a broker says to the controller that it lives, and what it wants to be next.

v1 names log directories that failed (KIP-858), v2 those that take no new replicas (KIP-1066).
"""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, ApiMessage, Uuid, nullable, tagged, versions


class BrokerHeartbeatRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=63, kind="request")
    broker_id: I32 = 0
    broker_epoch: I64 = -1
    current_metadata_offset: I64 = 0
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: Annotated[list[Uuid], versions("1+"), tagged(0, "1+")] = []
    cordoned_log_dirs: Annotated[list[Uuid] | None, versions("2+"), nullable("2+"), tagged(1, "2+")] = None


class BrokerHeartbeatResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=63, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False
