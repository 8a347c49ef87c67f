"""The newest metadata, as coordinators look at it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mainstem.cluster.image import TopicImage
from mainstem.coordinator.topics import TopicInfo

if TYPE_CHECKING:
    from mainstem.broker.broker_role import BrokerRole


class ImageTopics:
    """The topics of a node's image."""

    def __init__(self, node: "BrokerRole") -> None:
        self._node = node

    @property
    def version(self) -> int:
        return self._node.image.offset

    def by_name(self, name: str) -> TopicInfo | None:
        return _info(self._node.image.topics_by_name.get(name))

    def by_id(self, topic_id: bytes) -> TopicInfo | None:
        return _info(self._node.image.topics_by_id.get(topic_id))

    def names(self) -> Iterable[str]:
        return self._node.image.topics_by_name

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        image = self._node.image
        topic = image.topics_by_id.get(topic_id)
        if topic is None or partition >= len(topic.partitions):
            return frozenset()
        brokers = (image.brokers.get(replica) for replica in topic.partitions[partition].replicas)
        return frozenset(broker.rack for broker in brokers if broker is not None and broker.rack is not None)


def _info(topic: TopicImage | None) -> TopicInfo | None:
    return None if topic is None else TopicInfo(topic.name, topic.topic_id, len(topic.partitions))
