"""Records to bytes and back. A decoder given any bytes returns a record, None for a key of an unknown type,
or raises ProtocolError.
"""

from collections.abc import Callable, Iterable
from typing import Any

from mainstem.coordinator.group.records import classic, consumer, offsets
from mainstem.protocol import codec
from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.schema import DataMessage, parse_versions

# Each key class with its value's class and the version in which Kafka 4.3 writes that value.
_PAIRS: tuple[tuple[type, type, int], ...] = (
    (offsets.LegacyOffsetCommitKey, offsets.OffsetCommitValue, 0),
    (offsets.OffsetCommitKey, offsets.OffsetCommitValue, 4),
    (classic.GroupMetadataKey, classic.GroupMetadataValue, 3),
    (consumer.ConsumerGroupMetadataKey, consumer.ConsumerGroupMetadataValue, 0),
    (consumer.ConsumerGroupPartitionMetadataKey, consumer.ConsumerGroupPartitionMetadataValue, 0),
    (consumer.ConsumerGroupMemberMetadataKey, consumer.ConsumerGroupMemberMetadataValue, 0),
    (
        consumer.ConsumerGroupTargetAssignmentMetadataKey,
        consumer.ConsumerGroupTargetAssignmentMetadataValue,
        0,
    ),
    (consumer.ConsumerGroupTargetAssignmentMemberKey, consumer.ConsumerGroupTargetAssignmentMemberValue, 0),
    (consumer.ConsumerGroupCurrentMemberAssignmentKey, consumer.ConsumerGroupCurrentMemberAssignmentValue, 0),
    (consumer.ConsumerGroupRegularExpressionKey, consumer.ConsumerGroupRegularExpressionValue, 0),
)

# The end of a member's record. To Kafka a member without the tag is one of the classic protocol with nothing
# to say: that it is none has to be written, as one tag (0) of one byte that says null (0).
_NO_TAGS = b"\x00"
_NO_CLASSIC_MEMBER = b"\x01\x00\x01\x00"


def _schema(cls: Any) -> DataMessage:
    schema: DataMessage = cls.SCHEMA
    return schema


_KEY_CLASSES = {_schema(key).record_api_key: key for key, _, _ in _PAIRS}
_VALUE_CLASSES = {key: value for key, value, _ in _PAIRS}
_WRITTEN_VERSIONS = {value: version for _, value, version in _PAIRS}

# The bytes in front, and what makes those that follow: known after the first record of its kind.
Prefixed = tuple[bytes, Callable[[Any], Iterable[Any]]]
_key_encoders: dict[type, Prefixed] = {}
_value_encoders: dict[tuple[type, int | None], Prefixed] = {}


def encode_key(key: Any) -> bytes:
    cls = type(key)
    prefix, encode = _key_encoders.get(cls) or _learn_key(cls)
    return prefix + b"".join(encode(key))


def encode_value(value: Any, version: int | None = None) -> bytes:
    """In the version that Kafka writes, unless another one is given."""
    cls = type(value)
    prefix, encode = _value_encoders.get((cls, version)) or _learn_value(cls, version)
    data = prefix + b"".join(encode(value))
    if cls is consumer.ConsumerGroupMemberMetadataValue and value.classic_member_metadata is None:
        return data[: -len(_NO_TAGS)] + _NO_CLASSIC_MEMBER
    return data


def _learn_key(cls: type) -> Prefixed:
    record_type = _schema(cls).record_api_key
    assert record_type is not None
    learned = _key_encoders[cls] = record_type.to_bytes(2, "big"), codec.encoder(cls, 0)
    return learned


def _learn_value(cls: type, version: int | None) -> Prefixed:
    written = _WRITTEN_VERSIONS[cls] if version is None else version
    learned = _value_encoders[cls, version] = written.to_bytes(2, "big"), codec.encoder(cls, written)
    return learned


def decode_key(data: bytes) -> Any:
    """The key, or None for one of a type that is not known here."""
    if len(data) < 2:
        raise ProtocolError("a record key is shorter than its type")
    cls = _KEY_CLASSES.get(int.from_bytes(data[:2], "big"))
    return None if cls is None else codec.decode(cls, 0, data[2:])


def decode_value(key: Any, data: bytes) -> Any:
    """The value that stands with this key."""
    cls = _VALUE_CLASSES[type(key)]
    version = int.from_bytes(data[:2], "big", signed=True)
    known = parse_versions(_schema(cls).versions)
    if len(data) < 2 or not known.first <= version <= known.last:
        raise ProtocolError(f"{cls.__name__} has no version {version}")
    if cls is consumer.ConsumerGroupMemberMetadataValue and data.endswith(_NO_CLASSIC_MEMBER):
        data = data.removesuffix(_NO_CLASSIC_MEMBER) + _NO_TAGS
    return codec.decode(cls, version, data[2:])
