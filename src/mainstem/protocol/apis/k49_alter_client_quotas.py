"""AlterClientQuotas (key 49): set and remove quotas."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import F64, I16, I32, ApiMessage, nullable


class EntityData(Struct, gc=False):
    entity_type: str = ""
    entity_name: Annotated[str | None, nullable("0+")] = ""


class OpData(Struct, gc=False):
    key: str = ""
    value: F64 = 0.0
    remove: bool = False


class EntryData(Struct, gc=False):
    entity: list[EntityData] = []
    ops: list[OpData] = []


class AlterClientQuotasRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=49, kind="request")
    entries: list[EntryData] = []
    validate_only: bool = False


class ResponseEntryData(Struct, gc=False):
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
    entity: list[EntityData] = []


class AlterClientQuotasResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=49, kind="response")
    throttle_time_ms: I32 = 0
    entries: list[ResponseEntryData] = []
