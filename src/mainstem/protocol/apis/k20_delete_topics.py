"""DeleteTopics (key 20): delete topics by name and, from v6, by id."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, Uuid, nullable, versions
from mainstem.protocol.uuids import ZERO_UUID


class DeleteTopicState(Struct, gc=False):
    name: Annotated[str | None, nullable("6+")] = None
    topic_id: Uuid = ZERO_UUID


class DeleteTopicsRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=20, kind="request")
    topics: Annotated[list[DeleteTopicState], versions("6+")] = []
    topic_names: Annotated[list[str], versions("0-5")] = []
    timeout_ms: I32 = 0


class DeletableTopicResult(Struct, gc=False):
    name: Annotated[str | None, nullable("6+")] = ""
    topic_id: Annotated[Uuid, versions("6+")] = ZERO_UUID
    error_code: I16 = 0
    error_message: Annotated[str | None, versions("5+"), nullable("5+")] = None


class DeleteTopicsResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=20, kind="response")
    throttle_time_ms: I32 = 0
    responses: list[DeletableTopicResult] = []
