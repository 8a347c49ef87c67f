"""An image written down as records: replaying them on an empty image gives the image again.

The order is Kafka's: feature levels first, since they say how the rest is to be read.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from mainstem.cluster import records as r
from mainstem.cluster.features import KRAFT_VERSION, METADATA_VERSION
from mainstem.cluster.image import (
    BrokerImage,
    ControllerImage,
    Endpoint,
    FeatureRange,
    MetadataImage,
    TopicImage,
)

_Endpoint = TypeVar("_Endpoint", r.BrokerEndpoint, r.ControllerEndpoint)
_Feature = TypeVar("_Feature", r.BrokerFeature, r.ControllerFeature)


def snapshot_records(image: MetadataImage) -> Iterator[r.MetadataRecord]:
    yield from _features(image)
    for broker in image.brokers.values():
        yield _broker(broker)
    for controller in image.controllers.values():
        yield _controller(controller)
    for topic in image.topics_by_id.values():
        yield from _topic(topic)
    for (resource_type, resource_name), settings in image.configs.items():
        for name, value in settings.items():
            yield r.ConfigRecord(resource_type, resource_name, name, value)
    for entity, limits in image.quotas.items():
        parts = [r.EntityData(kind, name) for kind, name in entity]
        for key, limit in limits.items():
            yield r.ClientQuotaRecord(parts, key, limit, False)
    if image.next_producer_id:
        yield r.ProducerIdsRecord(-1, -1, image.next_producer_id)
    yield from image.acls.values()
    yield from image.scram_credentials.values()
    yield from image.delegation_tokens.values()


def _features(image: MetadataImage) -> Iterator[r.MetadataRecord]:
    levels = dict(image.features)
    # The quorum's own level stands in the snapshot's control records.
    levels.pop(KRAFT_VERSION, None)
    if METADATA_VERSION in levels:
        yield r.FeatureLevelRecord(METADATA_VERSION, levels.pop(METADATA_VERSION))
    for name, level in levels.items():
        yield r.FeatureLevelRecord(name, level)


def _broker(broker: BrokerImage) -> r.RegisterBrokerRecord:
    cordoned = broker.cordoned_log_dirs
    return r.RegisterBrokerRecord(
        broker_id=broker.broker_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=_endpoints(r.BrokerEndpoint, broker.endpoints),
        features=_feature_ranges(r.BrokerFeature, broker.features),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_dirs),
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )


def _controller(controller: ControllerImage) -> r.RegisterControllerRecord:
    return r.RegisterControllerRecord(
        controller_id=controller.controller_id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=_endpoints(r.ControllerEndpoint, controller.endpoints),
        features=_feature_ranges(r.ControllerFeature, controller.features),
    )


def _topic(topic: TopicImage) -> Iterator[r.MetadataRecord]:
    yield r.TopicRecord(topic.name, topic.topic_id)
    for partition in topic.partitions:
        yield r.PartitionRecord(
            partition_id=partition.partition,
            topic_id=topic.topic_id,
            replicas=list(partition.replicas),
            isr=list(partition.isr),
            removing_replicas=list(partition.removing_replicas),
            adding_replicas=list(partition.adding_replicas),
            leader=partition.leader,
            leader_recovery_state=partition.leader_recovery_state,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            directories=list(partition.directories),
            eligible_leader_replicas=list(partition.eligible_leader_replicas) or None,
            last_known_elr=list(partition.last_known_elr) or None,
        )


def _endpoints(kind: type[_Endpoint], endpoints: Mapping[str, Endpoint]) -> list[_Endpoint]:
    return [kind(e.name, e.host, e.port, e.security_protocol) for e in endpoints.values()]


def _feature_ranges(kind: type[_Feature], features: Mapping[str, FeatureRange]) -> list[_Feature]:
    return [kind(name, levels.first, levels.last) for name, levels in features.items()]
