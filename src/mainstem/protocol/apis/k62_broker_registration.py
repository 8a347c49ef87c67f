"""BrokerRegistration (key 62): a broker that starts gets its epoch from the controller.

v2 names the log directories (KIP-858), v3 the epoch before a clean shutdown (KIP-966); v4 lists features
that begin at level 0 as well.
"""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, I64, U16, ApiMessage, Uuid, nullable, versions
from mainstem.protocol.uuids import ZERO_UUID


class Listener(Struct, gc=False):
    name: str = ""
    host: str = ""
    port: U16 = 0
    security_protocol: I16 = 0


class Feature(Struct, gc=False):
    name: str = ""
    min_supported_version: I16 = 0
    max_supported_version: I16 = 0


class BrokerRegistrationRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=62, kind="request")
    broker_id: I32 = 0
    cluster_id: str = ""
    incarnation_id: Uuid = ZERO_UUID
    listeners: list[Listener] = []
    features: list[Feature] = []
    rack: Annotated[str | None, nullable("0+")] = ""
    is_migrating_zk_broker: Annotated[bool, versions("1+")] = False
    log_dirs: Annotated[list[Uuid], versions("2+")] = []
    previous_broker_epoch: Annotated[I64, versions("3+")] = -1


class BrokerRegistrationResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=62, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    broker_epoch: I64 = -1
