"""What a decision rests on: the newest metadata, the brokers as the decision leaves them, and the settings
that speak about replicas.

It looks up, and never decides. One object serves one decision, so that nothing in it can be stale.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from mainstem.cluster.controller.partition_change import PartitionChange, PartitionRules
from mainstem.cluster.features import ELIGIBLE_LEADER_REPLICAS_VERSION, metadata_version
from mainstem.cluster.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from mainstem.cluster.records.versions import (
    has_directories,
    has_eligible_leader_replicas,
    has_epoch_per_shrunk_isr,
)
from mainstem.config import BrokerConfig
from mainstem.protocol.resources import ConfigResourceType

MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"


class Facts:
    """The brokers are those of the image until `put_broker` or `remove_broker` says what a decision does."""

    def __init__(self, image: MetadataImage, config: BrokerConfig) -> None:
        self.image = image
        self.config = config
        self.brokers: Mapping[int, BrokerImage] = image.brokers
        self.level = metadata_version(image)
        self.keeps_elr = elr_is_on(image)
        self._rules: dict[str, PartitionRules] = {}

    def put_broker(self, broker: BrokerImage) -> None:
        self.brokers = {**self.brokers, broker.broker_id: broker}

    def remove_broker(self, broker_id: int) -> None:
        self.brokers = {known: broker for known, broker in self.brokers.items() if known != broker_id}

    def fence(self, broker_id: int) -> None:
        self.put_broker(replace(self.brokers[broker_id], fenced=True))

    def is_active(self, broker_id: int) -> bool:
        """Whether the broker can lead and be in sync."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.active

    def change(self, topic: TopicImage, partition: PartitionImage) -> PartitionChange:
        """The beginning of a change of one partition."""
        return PartitionChange(topic.topic_id, partition, self._rules_of(topic), self.brokers)

    def allows_unclean_election(self, topic: str) -> bool:
        return self._setting(topic, UNCLEAN_LEADER_ELECTION).lower() == "true"

    def _rules_of(self, topic: TopicImage) -> PartitionRules:
        rules = self._rules.get(topic.name)
        if rules is None:
            # Nobody can ask for more replicas than a topic has.
            replicas = len(topic.partitions[0].replicas) if topic.partitions else 1
            rules = self._rules[topic.name] = PartitionRules(
                min_isr=min(int(self._setting(topic.name, MIN_INSYNC_REPLICAS)), replicas),
                keeps_elr=self.keeps_elr,
                knows_directories=has_directories(self.level),
                shrinking_begins_epoch=has_epoch_per_shrunk_isr(self.level),
            )
        return rules

    def _setting(self, topic: str, name: str) -> str:
        """The topic's own, that of this node's broker, the cluster's, or what this node was started with."""
        own = self.image.topic_config(topic).get(name)
        for whose in (str(self.config.get("node.id")), ""):
            if own is None:
                own = self.image.config(ConfigResourceType.BROKER, whose).get(name)
        return str(self.config.get(name)) if own is None else own


def elr_is_on(image: MetadataImage) -> bool:
    """Whether eligible leader replicas (KIP-966) are kept."""
    level = image.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0)
    return level > 0 and has_eligible_leader_replicas(metadata_version(image))
