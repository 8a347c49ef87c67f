"""Metadata records about the cluster's nodes: registration, fencing, and leaving."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, I64, U16, DataMessage, Uuid, nullable, tagged, versions
from mainstem.protocol.uuids import ZERO_UUID


class BrokerEndpoint(Struct, gc=False):
    name: str = ""
    host: str = ""
    port: U16 = 0
    security_protocol: I16 = 0


class BrokerFeature(Struct, gc=False):
    name: str = ""
    min_supported_version: I16 = 0
    max_supported_version: I16 = 0


class RegisterBrokerRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=0, versions="0-4", flexible="0+")
    broker_id: I32 = 0
    is_migrating_zk_broker: Annotated[bool, versions("2+")] = False
    incarnation_id: Uuid = ZERO_UUID
    broker_epoch: I64 = 0
    end_points: list[BrokerEndpoint] = []
    features: list[BrokerFeature] = []
    rack: Annotated[str | None, nullable("0+")] = ""
    fenced: bool = True
    in_controlled_shutdown: Annotated[bool, versions("1+")] = False
    log_dirs: Annotated[list[Uuid], versions("3+"), tagged(0, "3+")] = []
    cordoned_log_dirs: Annotated[list[Uuid] | None, versions("4+"), nullable("4+"), tagged(1, "4+")] = None


class UnregisterBrokerRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=1, versions="0", flexible="0+")
    broker_id: I32 = 0
    broker_epoch: I64 = 0


class FenceBrokerRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=7, versions="0", flexible="0+")
    id: I32 = 0
    epoch: I64 = 0


class UnfenceBrokerRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=8, versions="0", flexible="0+")
    id: I32 = 0
    epoch: I64 = 0


class BrokerRegistrationChangeRecord(Struct, gc=False):
    """`fenced`: -1 unfences, 1 fences, 0 leaves it; `in_controlled_shutdown`: 1 sets it."""

    SCHEMA: ClassVar = DataMessage(record_api_key=17, versions="0-3", flexible="0+")
    broker_id: I32 = 0
    broker_epoch: I64 = 0
    fenced: Annotated[I8, tagged(0, "0+")] = 0
    in_controlled_shutdown: Annotated[I8, versions("1+"), tagged(1, "1+")] = 0
    log_dirs: Annotated[list[Uuid], versions("2+"), tagged(2, "2+")] = []
    cordoned_log_dirs: Annotated[list[Uuid] | None, versions("3+"), nullable("3+"), tagged(3, "3+")] = None


class ControllerEndpoint(Struct, gc=False):
    name: str = ""
    host: str = ""
    port: U16 = 0
    security_protocol: I16 = 0


class ControllerFeature(Struct, gc=False):
    name: str = ""
    min_supported_version: I16 = 0
    max_supported_version: I16 = 0


class RegisterControllerRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=27, versions="0", flexible="0+")
    controller_id: I32 = 0
    incarnation_id: Uuid = ZERO_UUID
    zk_migration_ready: bool = False
    end_points: list[ControllerEndpoint] = []
    features: list[ControllerFeature] = []
