"""Metadata records about topics and their partitions."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I32, DataMessage, Uuid, nullable, tagged, versions
from mainstem.protocol.uuids import ZERO_UUID


class TopicRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=2, versions="0", flexible="0+")
    name: str = ""
    topic_id: Uuid = ZERO_UUID


class PartitionRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=3, versions="0-2", flexible="0+")
    partition_id: I32 = -1
    topic_id: Uuid = ZERO_UUID
    replicas: list[I32] = []
    isr: list[I32] = []
    removing_replicas: list[I32] = []
    adding_replicas: list[I32] = []
    leader: I32 = -1
    leader_recovery_state: Annotated[I8, tagged(0, "0+")] = 0
    leader_epoch: I32 = -1
    partition_epoch: I32 = -1
    directories: Annotated[list[Uuid], versions("1+")] = []
    eligible_leader_replicas: Annotated[list[I32] | None, versions("2+"), nullable("2+"), tagged(1, "2+")] = (
        None
    )
    last_known_elr: Annotated[list[I32] | None, versions("2+"), nullable("2+"), tagged(2, "2+")] = None


class PartitionChangeRecord(Struct, gc=False):
    """Only what is given changes; giving a leader, even the same one, starts a new leader epoch."""

    SCHEMA: ClassVar = DataMessage(record_api_key=5, versions="0-2", flexible="0+")
    partition_id: I32 = -1
    topic_id: Uuid = ZERO_UUID
    isr: Annotated[list[I32] | None, nullable("0+"), tagged(0, "0+")] = None
    leader: Annotated[I32, tagged(1, "0+")] = -2
    replicas: Annotated[list[I32] | None, nullable("0+"), tagged(2, "0+")] = None
    removing_replicas: Annotated[list[I32] | None, nullable("0+"), tagged(3, "0+")] = None
    adding_replicas: Annotated[list[I32] | None, nullable("0+"), tagged(4, "0+")] = None
    leader_recovery_state: Annotated[I8, tagged(5, "0+")] = -1
    directories: Annotated[list[Uuid] | None, versions("1+"), nullable("1+"), tagged(8, "1+")] = None
    eligible_leader_replicas: Annotated[list[I32] | None, versions("2+"), nullable("2+"), tagged(6, "2+")] = (
        None
    )
    last_known_elr: Annotated[list[I32] | None, versions("2+"), nullable("2+"), tagged(7, "2+")] = None


class RemoveTopicRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(record_api_key=9, versions="0", flexible="0+")
    topic_id: Uuid = ZERO_UUID


class ClearElrRecord(Struct, gc=False):
    """Forget the eligible leader replicas of one topic, or of all when the name is empty."""

    SCHEMA: ClassVar = DataMessage(record_api_key=28, versions="0", flexible="0+")
    topic_name: str = ""
