"""DescribeClientQuotas (key 48): quotas of users, client ids and addresses."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import F64, I8, I16, I32, ApiMessage, nullable


class ComponentData(Struct, gc=False):
    entity_type: str = ""
    match_type: I8 = 0
    match: Annotated[str | None, nullable("0+")] = ""


class DescribeClientQuotasRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=48, kind="request")
    components: list[ComponentData] = []
    strict: bool = False


class EntityData(Struct, gc=False):
    entity_type: str = ""
    entity_name: Annotated[str | None, nullable("0+")] = ""


class ValueData(Struct, gc=False):
    key: str = ""
    value: F64 = 0.0


class EntryData(Struct, gc=False):
    entity: list[EntityData] = []
    values: list[ValueData] = []


class DescribeClientQuotasResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=48, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = ""
    entries: Annotated[list[EntryData] | None, nullable("0+")] = []
