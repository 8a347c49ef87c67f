"""In which version a record is written: as the finalized `metadata.version` of the cluster allows, so that
the oldest node in it can read what the newest one decides.
"""

from collections.abc import Callable, Iterable
from functools import cache

from mainstem.cluster.records import brokers, topics
from mainstem.cluster.records.framing import (
    RECORD_CLASSES,
    MetadataRecord,
    decode_record,
    frame_prefix,
    versions_of,
)
from mainstem.protocol import codec

# 3.3-IV3 is the first level there is; then 3.4-IV0, 3.7-IV2 (log directories), 4.0-IV1 (eligible leader
# replicas), 4.3-IV0 (cordoned log directories).
_VERSIONS_SINCE: dict[type, dict[int, int]] = {
    brokers.RegisterBrokerRecord: {7: 1, 8: 2, 17: 3, 30: 4},
    brokers.BrokerRegistrationChangeRecord: {7: 1, 17: 2, 30: 3},
    topics.PartitionRecord: {7: 0, 17: 1, 23: 2},
    topics.PartitionChangeRecord: {7: 0, 17: 1, 23: 2},
}
# Of other records there is one version.
_TRANSACTIONS_SINCE = 13  # 3.6-IV1
_DIRECTORIES_SINCE = 17
_SHRINKING_CHANGED_IN = 12  # 3.6-IV0
_CONTROLLERS_REGISTER_SINCE = 15  # 3.7-IV0
_ELIGIBLE_LEADER_REPLICAS_SINCE = 23
_CORDONED_DIRECTORIES_SINCE = 30
# The levels that brought something new into the metadata.
_NEW_METADATA_AT = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})


def version_at(cls: type, metadata_version: int) -> int:
    """The version of a kind of record at this level."""
    since = _VERSIONS_SINCE.get(cls)
    if since is None:
        return versions_of(cls).last
    return max(version for level, version in since.items() if level <= max(metadata_version, min(since)))


def has_directories(metadata_version: int) -> bool:
    """Whether it can be written down in which directory a replica is."""
    return metadata_version >= _DIRECTORIES_SINCE


def has_cordoned_directories(metadata_version: int) -> bool:
    """Whether it can be written down which directories take no new replicas."""
    return metadata_version >= _CORDONED_DIRECTORIES_SINCE


def has_eligible_leader_replicas(metadata_version: int) -> bool:
    """Whether replicas that left the in-sync set can stay eligible to lead."""
    return metadata_version >= _ELIGIBLE_LEADER_REPLICAS_SINCE


def has_controller_registrations(metadata_version: int) -> bool:
    """Whether controllers register themselves."""
    return metadata_version >= _CONTROLLERS_REGISTER_SINCE


def has_epoch_per_shrunk_isr(metadata_version: int) -> bool:
    """Whether brokers of that level rely on a new leader epoch when the in-sync replicas become fewer."""
    return metadata_version < _SHRINKING_CHANGED_IN


def changes_metadata(metadata_version: int, later: int) -> bool:
    """Whether going down to a level from a later one would lose something."""
    return any(metadata_version < level <= later for level in _NEW_METADATA_AT)


def has_transactions(metadata_version: int) -> bool:
    """Whether a change may be longer than one batch."""
    return metadata_version >= _TRANSACTIONS_SINCE


@cache
def record_encoder(metadata_version: int) -> Callable[[MetadataRecord], bytes]:
    """What makes framed records at this level."""
    versions = {cls: version_at(cls, metadata_version) for cls in RECORD_CLASSES}
    framed = {cls: (frame_prefix(cls, version), version) for cls, version in versions.items()}

    def encode(record: MetadataRecord) -> bytes:
        prefix, version = framed[type(record)]
        return prefix + codec.encode(record, version)

    return encode


def as_written(records: Iterable[MetadataRecord], metadata_version: int) -> list[MetadataRecord]:
    """The records as everybody will read them: without what this level cannot say."""
    encode = record_encoder(metadata_version)
    return [decode_record(encode(record)) for record in records]
