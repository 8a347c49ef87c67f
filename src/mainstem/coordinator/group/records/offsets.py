"""A committed offset: one record per group, topic and partition."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I32, I64, DataMessage, Uuid, tagged, versions
from mainstem.protocol.uuids import ZERO_UUID


class OffsetCommitKey(Struct, gc=False, frozen=True):
    SCHEMA: ClassVar = DataMessage(record_api_key=1, versions="0")
    group: str = ""
    topic: str = ""
    partition: I32 = 0


class LegacyOffsetCommitKey(Struct, gc=False, frozen=True):
    """The same in the first form, which only very old brokers wrote."""

    SCHEMA: ClassVar = DataMessage(record_api_key=0, versions="0")
    group: str = ""
    topic: str = ""
    partition: I32 = 0


class OffsetCommitValue(Struct, gc=False, frozen=True):
    """Version 1 alone has an expiry of its own, asked for by OffsetCommit versions 2 to 4."""

    SCHEMA: ClassVar = DataMessage(versions="0-4", flexible="4+")
    offset: I64 = 0
    leader_epoch: Annotated[I32, versions("3+")] = -1
    metadata: str = ""
    commit_timestamp: I64 = 0
    expire_timestamp: Annotated[I64, versions("1")] = -1
    topic_id: Annotated[Uuid, versions("4+"), tagged(0, "4+")] = ZERO_UUID
