"""What consumers of the classic protocol say and are told inside the opaque bytes of JoinGroup and SyncGroup.

Bytes of a version newer than those known are read as the newest known one, as in Kafka.
"""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Final, TypeVar

from msgspec import Struct

from mainstem.coordinator.topics import Topics
from mainstem.protocol import codec
from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.schema import I32, DataMessage, nullable, versions

PROTOCOL_TYPE: Final = "consumer"
_VERSION_MAX: Final = 3


class EmbeddedPartitions(Struct, gc=False):
    topic: str = ""
    partitions: list[I32] = []


class Subscription(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0-3")
    topics: list[str] = []
    user_data: Annotated[bytes | None, nullable("0+")] = None
    owned_partitions: Annotated[list[EmbeddedPartitions], versions("1+")] = []
    generation_id: Annotated[I32, versions("2+")] = -1
    rack_id: Annotated[str | None, versions("3+"), nullable("3+")] = None


class EmbeddedAssignment(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0-3")
    assigned_partitions: list[EmbeddedPartitions] = []
    user_data: Annotated[bytes | None, nullable("0+")] = None


Message = TypeVar("Message")


def read_subscription(metadata: bytes) -> Subscription:
    """ProtocolError when it is none."""
    return _read(Subscription, metadata, _version(metadata))


def subscribed_topics(metadata: bytes) -> list[str]:
    """The same for the topics alone: they stand first in every version, and what a newer one has behind them
    need not be readable.
    """
    _version(metadata)
    return _read(Subscription, metadata, 0).topics


def read_assignment(assignment: bytes) -> EmbeddedAssignment:
    """ProtocolError when it is none."""
    return _read(EmbeddedAssignment, assignment, _version(assignment))


def write_assignment(target: Mapping[bytes, Collection[int]], topics: Topics, metadata: bytes) -> bytes:
    """In the version in which the member described itself; topics that are gone are left out."""
    partitions = [
        EmbeddedPartitions(info.name, sorted(numbers))
        for topic_id, numbers in target.items()
        if (info := topics.by_id(topic_id)) is not None
    ]
    version = _version(metadata)
    return version.to_bytes(2, "big") + codec.encode(EmbeddedAssignment(partitions), version)


def _read(cls: type[Message], data: bytes, version: int) -> Message:
    """What follows the message is of no interest."""
    body: Any = bytes(data)
    message, _ = codec.decoder(cls, version)(body, 2, len(body))
    return message


def _version(data: bytes) -> int:
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        raise ProtocolError("not a message of the consumer protocol: its version is missing or negative")
    return min(version, _VERSION_MAX)
