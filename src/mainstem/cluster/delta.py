"""From one image to the next: a run of records applied to an image.

Replaying is the only way metadata changes, on the node that made the records as on any other. A delta must
never decide anything: a record that does not fit what came before raises `ReplayError`, because from there on
the image would be a guess.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mainstem.cluster import records as r
from mainstem.cluster.features import KRAFT_VERSION
from mainstem.cluster.image import (
    BrokerImage,
    ControllerImage,
    Endpoint,
    FeatureRange,
    MetadataImage,
    QuotaEntity,
    TopicImage,
)
from mainstem.cluster.topics_delta import ReplayError, TopicsDelta
from mainstem.protocol.resources import ConfigResourceType

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class MetadataChanges(Struct, frozen=True):
    """What is different between two images, for those who act on it: topics that are new or changed, as they
    are now; topics that are gone; what has other settings, by type and name; brokers that are new, changed or
    gone. It is the same on every node, whether it made the records or replayed them.
    """

    topics: tuple[TopicImage, ...] = ()
    removed_topics: tuple[TopicImage, ...] = ()
    configs: frozenset[tuple[int, str]] = frozenset()
    brokers: frozenset[int] = frozenset()

    @classmethod
    def everything(cls, image: MetadataImage) -> "MetadataChanges":
        """From nothing to this image, for those who have seen nothing before."""
        return cls(tuple(image.topics_by_id.values()), (), frozenset(image.configs), frozenset(image.brokers))

    @classmethod
    def between(cls, before: MetadataImage, after: MetadataImage) -> "MetadataChanges":
        """From one image to a later one, when nobody knows what came between them."""
        return cls(
            tuple(
                topic
                for topic_id, topic in after.topics_by_id.items()
                if before.topics_by_id.get(topic_id) != topic
            ),
            tuple(
                topic for topic_id, topic in before.topics_by_id.items() if topic_id not in after.topics_by_id
            ),
            _different(before.configs, after.configs),
            _different(before.brokers, after.brokers),
        )

    @property
    def concerns_clients(self) -> bool:
        """Whether anything is different that clients are told of, or that decides how they are served."""
        return bool(self.topics or self.removed_topics or self.configs or self.brokers)

    @property
    def alters_brokers(self) -> bool:
        """Whether settings of brokers are other ones."""
        return any(resource_type == ConfigResourceType.BROKER for resource_type, _ in self.configs)


def _different(before: Mapping[_Key, object], after: Mapping[_Key, object]) -> frozenset[_Key]:
    return frozenset(key for key in {**before, **after} if before.get(key) != after.get(key))


class _Table(Generic[_Key, _Value]):
    """A mapping of the image that is copied when it is first changed."""

    __slots__ = ("_base", "_copy")

    def __init__(self, base: Mapping[_Key, _Value]) -> None:
        self._base = base
        self._copy: dict[_Key, _Value] | None = None

    def get(self, key: _Key) -> _Value | None:
        return self.build().get(key)

    def put(self, key: _Key, value: _Value) -> None:
        self._writable()[key] = value

    def remove(self, key: _Key) -> None:
        if key in self.build():
            del self._writable()[key]

    def build(self) -> Mapping[_Key, _Value]:
        return self._base if self._copy is None else self._copy

    def _writable(self) -> dict[_Key, _Value]:
        if self._copy is None:
            self._copy = dict(self._base)
        return self._copy


class MetadataDelta:
    """Takes records one by one, then gives the image that has them all."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._topics = TopicsDelta(image)
        self._brokers = _Table(image.brokers)
        self._controllers = _Table(image.controllers)
        self._configs = _Table(image.configs)
        self._features = _Table(image.features)
        self._quotas = _Table(image.quotas)
        self._acls = _Table(image.acls)
        self._scram = _Table(image.scram_credentials)
        self._tokens = _Table(image.delegation_tokens)
        self._next_producer_id = image.next_producer_id
        self._changed_configs: set[tuple[int, str]] = set()
        self._changed_brokers: set[int] = set()

    def replay(self, record: r.MetadataRecord) -> None:
        _REPLAY[type(record)](self, record)

    def replay_all(self, records: Iterable[r.MetadataRecord]) -> None:
        for record in records:
            _REPLAY[type(record)](self, record)

    def set_kraft_version(self, level: int) -> None:
        """The one feature that the quorum's own control records give."""
        self._set_feature(KRAFT_VERSION, level)

    def build(self, offset: int, epoch: int, timestamp_ms: int) -> MetadataImage:
        """The image at `offset`, the last one that the records took."""
        topics = self._topics.build()
        image = replace(
            self._image,
            offset=offset,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
            brokers=self._brokers.build(),
            controllers=self._controllers.build(),
            configs=self._configs.build(),
            features=self._features.build(),
            next_producer_id=self._next_producer_id,
            quotas=self._quotas.build(),
            acls=self._acls.build(),
            scram_credentials=self._scram.build(),
            delegation_tokens=self._tokens.build(),
        )
        if topics is None:
            return image
        by_name, by_id, by_form = topics
        return replace(image, topics_by_name=by_name, topics_by_id=by_id, names_by_normal_form=by_form)

    def changes(self, built: MetadataImage) -> MetadataChanges:
        """What is different in `built`, the image that this delta gave."""
        return MetadataChanges(
            tuple(built.topics_by_id[topic_id] for topic_id in self._topics.touched_ids()),
            self._topics.removed(),
            frozenset(self._changed_configs),
            frozenset(self._changed_brokers),
        )

    def _replay_remove_topic(self, record: r.RemoveTopicRecord) -> None:
        name = self._topics.replay_remove_topic(record)
        key = (int(ConfigResourceType.TOPIC), name)
        if self._configs.get(key) is not None:
            self._configs.remove(key)
            self._changed_configs.add(key)

    def _replay_config(self, record: r.ConfigRecord) -> None:
        key = (record.resource_type, record.resource_name)
        settings = dict(self._configs.get(key) or {})
        if record.value is None:
            settings.pop(record.name, None)
        else:
            settings[record.name] = record.value
        if settings:
            self._configs.put(key, settings)
        else:
            self._configs.remove(key)
        self._changed_configs.add(key)

    def _replay_register_broker(self, record: r.RegisterBrokerRecord) -> None:
        cordoned = record.cordoned_log_dirs
        self._put_broker(
            BrokerImage(
                record.broker_id,
                record.incarnation_id,
                record.broker_epoch,
                _endpoints(record.end_points),
                _feature_ranges(record.features),
                record.rack,
                record.fenced,
                record.in_controlled_shutdown,
                tuple(record.log_dirs),
                None if cordoned is None else tuple(cordoned),
            )
        )

    def _replay_unregister_broker(self, record: r.UnregisterBrokerRecord) -> None:
        self._broker(record.broker_id, record.broker_epoch)
        self._brokers.remove(record.broker_id)
        self._changed_brokers.add(record.broker_id)

    def _replay_fence_broker(self, record: r.FenceBrokerRecord) -> None:
        self._put_broker(replace(self._broker(record.id, record.epoch), fenced=True))

    def _replay_unfence_broker(self, record: r.UnfenceBrokerRecord) -> None:
        self._put_broker(replace(self._broker(record.id, record.epoch), fenced=False))

    def _replay_broker_change(self, record: r.BrokerRegistrationChangeRecord) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        cordoned = record.cordoned_log_dirs
        self._put_broker(
            replace(
                broker,
                fenced=record.fenced > 0 if record.fenced else broker.fenced,
                in_controlled_shutdown=broker.in_controlled_shutdown or record.in_controlled_shutdown == 1,
                log_dirs=tuple(record.log_dirs) or broker.log_dirs,
                cordoned_log_dirs=broker.cordoned_log_dirs if cordoned is None else tuple(cordoned),
            )
        )

    def _replay_register_controller(self, record: r.RegisterControllerRecord) -> None:
        self._controllers.put(
            record.controller_id,
            ControllerImage(
                record.controller_id,
                record.incarnation_id,
                _endpoints(record.end_points),
                _feature_ranges(record.features),
                record.zk_migration_ready,
            ),
        )

    def _replay_feature(self, record: r.FeatureLevelRecord) -> None:
        self._set_feature(record.name, record.feature_level)

    def _replay_producer_ids(self, record: r.ProducerIdsRecord) -> None:
        if record.next_producer_id < self._next_producer_id:
            raise ReplayError(
                f"the next producer id goes back from {self._next_producer_id} to {record.next_producer_id}"
            )
        self._next_producer_id = record.next_producer_id

    def _replay_quota(self, record: r.ClientQuotaRecord) -> None:
        entity: QuotaEntity = tuple(sorted((part.entity_type, part.entity_name) for part in record.entity))
        limits = dict(self._quotas.get(entity) or {})
        if record.remove:
            limits.pop(record.key, None)
        else:
            limits[record.key] = record.value
        if limits:
            self._quotas.put(entity, limits)
        else:
            self._quotas.remove(entity)

    def _set_feature(self, name: str, level: int) -> None:
        if level == 0:
            self._features.remove(name)
        else:
            self._features.put(name, level)

    def _broker(self, broker_id: int, epoch: int) -> BrokerImage:
        broker = self._brokers.get(broker_id)
        if broker is None:
            raise ReplayError(f"a record speaks of broker {broker_id}, which is not registered")
        if broker.epoch != epoch:
            raise ReplayError(f"a record for epoch {epoch} of broker {broker_id} meets epoch {broker.epoch}")
        return broker

    def _put_broker(self, broker: BrokerImage) -> None:
        self._brokers.put(broker.broker_id, broker)
        self._changed_brokers.add(broker.broker_id)


def _endpoints(endpoints: Iterable[r.BrokerEndpoint | r.ControllerEndpoint]) -> dict[str, Endpoint]:
    return {e.name: Endpoint(e.name, e.host, e.port, e.security_protocol) for e in endpoints}


def _feature_ranges(features: Iterable[r.BrokerFeature | r.ControllerFeature]) -> dict[str, FeatureRange]:
    return {f.name: FeatureRange(f.min_supported_version, f.max_supported_version) for f in features}


def _ignore(_delta: MetadataDelta, _record: Any) -> None:
    """Records that stand for something else (transactions are resolved before a delta sees them)."""


_Replay = Callable[[MetadataDelta, Any], None]
_REPLAY: dict[type, _Replay] = {
    r.TopicRecord: lambda delta, record: delta._topics.replay_topic(record),
    r.PartitionRecord: lambda delta, record: delta._topics.replay_partition(record),
    r.PartitionChangeRecord: lambda delta, record: delta._topics.replay_partition_change(record),
    r.ClearElrRecord: lambda delta, record: delta._topics.replay_clear_elr(record),
    r.RemoveTopicRecord: MetadataDelta._replay_remove_topic,
    r.ConfigRecord: MetadataDelta._replay_config,
    r.RegisterBrokerRecord: MetadataDelta._replay_register_broker,
    r.UnregisterBrokerRecord: MetadataDelta._replay_unregister_broker,
    r.FenceBrokerRecord: MetadataDelta._replay_fence_broker,
    r.UnfenceBrokerRecord: MetadataDelta._replay_unfence_broker,
    r.BrokerRegistrationChangeRecord: MetadataDelta._replay_broker_change,
    r.RegisterControllerRecord: MetadataDelta._replay_register_controller,
    r.FeatureLevelRecord: MetadataDelta._replay_feature,
    r.ProducerIdsRecord: MetadataDelta._replay_producer_ids,
    r.ClientQuotaRecord: MetadataDelta._replay_quota,
    r.AccessControlEntryRecord: lambda delta, record: delta._acls.put(record.id, record),
    r.RemoveAccessControlEntryRecord: lambda delta, record: delta._acls.remove(record.id),
    r.UserScramCredentialRecord: lambda delta, record: delta._scram.put(
        (record.mechanism, record.name), record
    ),
    r.RemoveUserScramCredentialRecord: lambda delta, record: delta._scram.remove(
        (record.mechanism, record.name)
    ),
    r.DelegationTokenRecord: lambda delta, record: delta._tokens.put(record.token_id, record),
    r.RemoveDelegationTokenRecord: lambda delta, record: delta._tokens.remove(record.token_id),
    r.NoOpRecord: _ignore,
    r.ZkMigrationStateRecord: _ignore,
}
