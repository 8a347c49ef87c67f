"""How a metadata record stands in the log: frame version, record key and version as varints, then the body.

A decoder given any bytes returns a record or raises `ProtocolError`; nothing else comes out of it. A key or a
version that is not known here is an error: metadata that is not understood must not be passed over.
"""

from typing import Any

from mainstem.cluster.records import brokers, security, settings, topics
from mainstem.protocol import codec
from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.primitives import Buffer, read_uvarint, write_uvarint
from mainstem.protocol.schema import DataMessage, VersionRange, parse_versions

# The union of all record classes; each carries its facts in its SCHEMA.
MetadataRecord = Any

FRAME_VERSION = 1

RECORD_CLASSES: tuple[type, ...] = (
    brokers.RegisterBrokerRecord,
    brokers.UnregisterBrokerRecord,
    topics.TopicRecord,
    topics.PartitionRecord,
    settings.ConfigRecord,
    topics.PartitionChangeRecord,
    brokers.FenceBrokerRecord,
    brokers.UnfenceBrokerRecord,
    topics.RemoveTopicRecord,
    security.DelegationTokenRecord,
    security.UserScramCredentialRecord,
    settings.FeatureLevelRecord,
    security.ClientQuotaRecord,
    settings.ProducerIdsRecord,
    brokers.BrokerRegistrationChangeRecord,
    security.AccessControlEntryRecord,
    security.RemoveAccessControlEntryRecord,
    settings.NoOpRecord,
    settings.ZkMigrationStateRecord,
    security.RemoveUserScramCredentialRecord,
    settings.BeginTransactionRecord,
    settings.EndTransactionRecord,
    settings.AbortTransactionRecord,
    security.RemoveDelegationTokenRecord,
    brokers.RegisterControllerRecord,
    topics.ClearElrRecord,
)


def _schema(cls: Any) -> DataMessage:
    schema: DataMessage = cls.SCHEMA
    return schema


def _record_key(cls: type) -> int:
    key = _schema(cls).record_api_key
    assert key is not None, f"{cls.__name__} has no record key"
    return key


def versions_of(cls: type) -> VersionRange:
    return parse_versions(_schema(cls).versions)


_BY_KEY: dict[int, tuple[type, VersionRange]] = {
    _record_key(cls): (cls, versions_of(cls)) for cls in RECORD_CLASSES
}


def frame_prefix(cls: type, version: int) -> bytes:
    """What stands before the body."""
    return write_uvarint(FRAME_VERSION) + write_uvarint(_record_key(cls)) + write_uvarint(version)


_NEWEST: dict[type, tuple[int, bytes]] = {
    cls: (versions_of(cls).last, frame_prefix(cls, versions_of(cls).last)) for cls in RECORD_CLASSES
}


def encode_record(record: MetadataRecord, version: int | None = None) -> bytes:
    """The framed record, in its newest version unless told otherwise."""
    cls = type(record)
    if version is None:
        version, prefix = _NEWEST[cls]
    else:
        prefix = frame_prefix(cls, version)
    return prefix + codec.encode(record, version)


def decode_record(data: Buffer) -> MetadataRecord:
    """The record that fills `data` to its last byte."""
    end = len(data)
    frame_version, pos = read_uvarint(data, 0, end)
    if frame_version != FRAME_VERSION:
        raise ProtocolError(f"a metadata record has frame version {frame_version}, known is {FRAME_VERSION}")
    key, pos = read_uvarint(data, pos, end)
    version, pos = read_uvarint(data, pos, end)
    known = _BY_KEY.get(key)
    if known is None:
        raise ProtocolError(f"metadata record key {key} is not known")
    cls, versions = known
    if version not in versions:
        raise ProtocolError(
            f"{cls.__name__} version {version} is not known (known: {versions.first} to {versions.last})"
        )
    record: MetadataRecord
    record, pos = codec.decoder(cls, version)(data, pos, end)
    if pos != end:
        raise ProtocolError(f"{cls.__name__} v{version} is followed by {end - pos} bytes")
    return record
