"""The control records of the metadata log and its snapshots, in Kafka's schema.

They tell about the quorum and about a snapshot's borders, never about the cluster's metadata.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from msgspec import Struct

from mainstem.protocol import codec
from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.schema import I16, I32, I64, U16, DataMessage, Uuid, versions
from mainstem.protocol.uuids import ZERO_UUID
from mainstem.records.batch import CONTROL_MASK
from mainstem.records.control import ControlType, control_key, control_type_of
from mainstem.records.record import Record, build_batch


class LeaderVoter(Struct, gc=False):
    voter_id: I32 = 0
    voter_directory_id: Annotated[Uuid, versions("1+")] = ZERO_UUID


class LeaderChangeMessage(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0-1", flexible="0+")
    version: I16 = 0
    leader_id: I32 = 0
    voters: list[LeaderVoter] = []
    granting_voters: list[LeaderVoter] = []


class SnapshotHeaderRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    version: I16 = 0
    last_contained_log_timestamp: I64 = 0


class SnapshotFooterRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    version: I16 = 0


class KRaftVersionRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    version: I16 = 0
    k_raft_version: I16 = 0


class VoterEndpoint(Struct, gc=False):
    name: str = ""
    host: str = ""
    port: U16 = 0


class KRaftVersionFeature(Struct, frozen=True, gc=False):
    min_supported_version: I16 = 0
    max_supported_version: I16 = 0


class VoterEntry(Struct, gc=False):
    voter_id: I32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    endpoints: list[VoterEndpoint] = []
    k_raft_version_feature: KRaftVersionFeature = KRaftVersionFeature()


class VotersRecord(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    version: I16 = 0
    voters: list[VoterEntry] = []


ControlRecord = (
    LeaderChangeMessage | SnapshotHeaderRecord | SnapshotFooterRecord | KRaftVersionRecord | VotersRecord
)

_CLASSES: dict[ControlType, Any] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_TYPES: dict[type, ControlType] = {cls: kind for kind, cls in _CLASSES.items()}


def control_batch(
    records: Sequence[ControlRecord], *, base_offset: int, epoch: int, timestamp_ms: int
) -> bytearray:
    """One batch with these control records. Kafka writes all of them in version 0."""
    return build_batch(
        [
            Record(0, timestamp_ms, control_key(_TYPES[type(record)]), codec.encode(record, 0))
            for record in records
        ],
        base_offset=base_offset,
        leader_epoch=epoch,
        attributes=CONTROL_MASK,
    )


def decode_control(record: Record) -> ControlRecord | None:
    """The message of a control record; None for a type that has nothing to say here."""
    cls = _CLASSES.get(kind) if (kind := control_type_of(record.key)) is not None else None
    if cls is None:
        return None
    value = record.value or b""
    # The first field names the version in which the rest is written.
    version = int.from_bytes(value[:2], signed=True)
    if version not in ((0, 1) if cls is LeaderChangeMessage else (0,)):
        raise ProtocolError(f"a {cls.__name__} at offset {record.offset} has the unknown version {version}")
    message: ControlRecord = codec.decode(cls, version, value)
    return message
