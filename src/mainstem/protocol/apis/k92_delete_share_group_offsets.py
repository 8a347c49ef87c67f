"""DeleteShareGroupOffsets (key 92): forget the start offsets of an empty share group's topics."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, Uuid, nullable
from mainstem.protocol.uuids import ZERO_UUID


class DeleteShareGroupOffsetsRequestTopic(Struct, gc=False):
    topic_name: str = ""


class DeleteShareGroupOffsetsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=92, kind="request")
    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = []


class DeleteShareGroupOffsetsResponseTopic(Struct, gc=False):
    topic_name: str = ""
    topic_id: Uuid = ZERO_UUID
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None


class DeleteShareGroupOffsetsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=92, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    error_message: Annotated[str | None, nullable("0+")] = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = []
