"""Metadata records about who may do what: quotas, access control, SCRAM credentials, delegation tokens."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import F64, I8, I32, I64, DataMessage, Uuid, nullable
from mainstem.protocol.uuids import ZERO_UUID


class EntityData(Struct, gc=False):
    entity_type: str = ""
    entity_name: Annotated[str | None, nullable("0+")] = ""


class ClientQuotaRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=14, versions="0", flexible="0+")
    entity: list[EntityData] = []
    key: str = ""
    value: F64 = 0.0
    remove: bool = False


class AccessControlEntryRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=18, versions="0", flexible="0+")
    id: Uuid = ZERO_UUID
    resource_type: I8 = 0
    resource_name: str = ""
    pattern_type: I8 = 0
    principal: str = ""
    host: str = ""
    operation: I8 = 0
    permission_type: I8 = 0


class RemoveAccessControlEntryRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=19, versions="0", flexible="0+")
    id: Uuid = ZERO_UUID


class UserScramCredentialRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=11, versions="0", flexible="0+")
    name: str = ""
    mechanism: I8 = 0
    salt: bytes = b""
    stored_key: bytes = b""
    server_key: bytes = b""
    iterations: I32 = 0


class RemoveUserScramCredentialRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=22, versions="0", flexible="0+")
    name: str = ""
    mechanism: I8 = 0


class DelegationTokenRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=10, versions="0", flexible="0+")
    owner: str = ""
    requester: str = ""
    renewers: list[str] = []
    issue_timestamp: I64 = 0
    max_timestamp: I64 = 0
    expiration_timestamp: I64 = 0
    token_id: str = ""


class RemoveDelegationTokenRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=26, versions="0", flexible="0+")
    token_id: str = ""
