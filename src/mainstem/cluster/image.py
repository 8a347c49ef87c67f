"""The cluster's metadata at one offset of the metadata log, as immutable values.

An image is what replaying the records up to `offset` gives, and nothing else; it is made by `delta` only.
Nobody may change what it holds: every reader of one image, now or later, sees the same cluster. Whatever is
derived from an image (encoded answers, look-up tables) can be cached by its identity.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mainstem.cluster.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
)
from mainstem.protocol.resources import ConfigResourceType

NO_LEADER = -1
# Where a replica is that had its directory in a broker's log directory that is gone.
LOST_DIRECTORY = (1).to_bytes(16)
NO_OFFSET = -1


class PartitionImage(Struct, frozen=True, gc=False):
    """One partition; the tuples are shared between partitions where they are equal."""

    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[bytes, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    def offline_replicas(self, brokers: Mapping[int, "BrokerImage"]) -> list[int]:
        """Those whose brokers are gone or fenced, or have lost the directory with the replica."""
        directories = dict(zip(self.replicas, self.directories, strict=False))
        return [
            replica
            for replica in self.replicas
            if (broker := brokers.get(replica)) is None
            or broker.fenced
            or not broker.has_directory(directories.get(replica, b""))
        ]


class TopicImage(Struct, frozen=True):
    """One topic; the partition with index i stands at place i."""

    name: str
    topic_id: bytes
    partitions: tuple[PartitionImage, ...] = ()


class Endpoint(Struct, frozen=True, gc=False):
    """Where one named listener of a node is reached."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class FeatureRange(Struct, frozen=True, gc=False):
    """The levels of a feature that a node supports, both ends included."""

    first: int
    last: int


class BrokerImage(Struct, frozen=True):
    """A registered broker. Its epoch is the offset of the record that registered it."""

    broker_id: int
    incarnation_id: bytes
    epoch: int
    endpoints: Mapping[str, Endpoint]
    features: Mapping[str, FeatureRange]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool = False
    log_dirs: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None

    @property
    def wholly_cordoned(self) -> bool:
        """Whether none of its directories takes new replicas."""
        return bool(self.log_dirs) and set(self.log_dirs) <= set(self.cordoned_log_dirs or ())

    def has_directory(self, directory: bytes) -> bool:
        """Whether a replica that is there can be used; one that is nowhere yet will be."""
        if not any(directory[:15]):
            return directory != LOST_DIRECTORY
        return not self.log_dirs or directory in self.log_dirs

    @property
    def active(self) -> bool:
        """Whether it can lead partitions and be in sync."""
        return not self.fenced and not self.in_controlled_shutdown


class ControllerImage(Struct, frozen=True):
    """A registered controller node."""

    controller_id: int
    incarnation_id: bytes
    endpoints: Mapping[str, Endpoint]
    features: Mapping[str, FeatureRange]
    zk_migration_ready: bool = False


# (entity type, entity name or None for the default) pairs, sorted by type.
QuotaEntity = tuple[tuple[str, str | None], ...]

_EMPTY: Mapping[Any, Any] = MappingProxyType({})


class MetadataImage(Struct, frozen=True):
    """Everything that the metadata log says, up to and including `offset`."""

    cluster_id: str = ""
    # Not from the records: the leader of the metadata quorum, as this node knows it.
    controller_id: int = -1
    offset: int = NO_OFFSET
    epoch: int = 0
    timestamp_ms: int = 0
    topics_by_name: Mapping[str, TopicImage] = _EMPTY
    topics_by_id: Mapping[bytes, TopicImage] = _EMPTY
    # Names that hold '.' or '_', under the form in which the two are one: see topic_names.
    names_by_normal_form: Mapping[str, tuple[str, ...]] = _EMPTY
    brokers: Mapping[int, BrokerImage] = _EMPTY
    controllers: Mapping[int, ControllerImage] = _EMPTY
    # By (resource type, resource name); the empty broker name holds the cluster-wide defaults.
    configs: Mapping[tuple[int, str], Mapping[str, str]] = _EMPTY
    features: Mapping[str, int] = _EMPTY
    next_producer_id: int = 0
    quotas: Mapping[QuotaEntity, Mapping[str, float]] = _EMPTY
    acls: Mapping[bytes, AccessControlEntryRecord] = _EMPTY
    # By (mechanism, user name).
    scram_credentials: Mapping[tuple[int, str], UserScramCredentialRecord] = _EMPTY
    delegation_tokens: Mapping[str, DelegationTokenRecord] = _EMPTY

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """The settings given for a resource; empty when there are none."""
        return self.configs.get((resource_type, name), _EMPTY)

    def topic_config(self, name: str) -> Mapping[str, str]:
        return self.configs.get((ConfigResourceType.TOPIC, name), _EMPTY)

    def partition(self, topic: str, partition: int) -> PartitionImage | None:
        found = self.topics_by_name.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            return None
        return found.partitions[partition]

    def with_controller(self, controller_id: int) -> "MetadataImage":
        """The same metadata under another quorum leader."""
        return replace(self, controller_id=controller_id)
