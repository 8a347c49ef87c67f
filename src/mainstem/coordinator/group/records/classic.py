"""A classic group with its members, as of its last completed rebalance."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I32, I64, DataMessage, nullable, versions


class GroupMetadataKey(Struct, gc=False, frozen=True):
    SCHEMA: ClassVar = DataMessage(record_api_key=2, versions="0")
    group: str = ""


class MemberMetadata(Struct, gc=False):
    member_id: str = ""
    group_instance_id: Annotated[str | None, versions("3+"), nullable("3+")] = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: Annotated[I32, versions("1+")] = -1
    session_timeout: I32 = 0
    subscription: bytes = b""
    assignment: bytes = b""


class GroupMetadataValue(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0-4", flexible="4+")
    protocol_type: str = ""
    generation: I32 = 0
    protocol: Annotated[str | None, nullable("0+")] = None
    leader: Annotated[str | None, nullable("0+")] = None
    current_state_timestamp: Annotated[I64, versions("2+")] = -1
    members: list[MemberMetadata] = []
