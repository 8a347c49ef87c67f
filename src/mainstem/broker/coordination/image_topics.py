"""The newest metadata, as coordinators look at it."""

from collections.abc import Iterable

from mainstem.broker.metadata.cache import MetadataCache
from mainstem.cluster.image import TopicImage
from mainstem.coordinator.topics import TopicInfo


class ImageTopics:
    """The topics of the image that this node has applied."""

    def __init__(self, cache: MetadataCache) -> None:
        self._cache = cache

    @property
    def version(self) -> int:
        return self._cache.image.offset

    def by_name(self, name: str) -> TopicInfo | None:
        return _info(self._cache.image.topics_by_name.get(name))

    def by_id(self, topic_id: bytes) -> TopicInfo | None:
        return _info(self._cache.image.topics_by_id.get(topic_id))

    def names(self) -> Iterable[str]:
        return self._cache.image.topics_by_name

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        image = self._cache.image
        topic = image.topics_by_id.get(topic_id)
        if topic is None or partition >= len(topic.partitions):
            return frozenset()
        brokers = (image.brokers.get(replica) for replica in topic.partitions[partition].replicas)
        return frozenset(broker.rack for broker in brokers if broker is not None and broker.rack is not None)


def _info(topic: TopicImage | None) -> TopicInfo | None:
    return None if topic is None else TopicInfo(topic.name, topic.topic_id, len(topic.partitions))
