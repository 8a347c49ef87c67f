"""Which partitions a broker leads, is in sync with or is eligible for, and which have no leader, or another
than the preferred one: looked up by those who would otherwise scan all partitions.

It describes one image, and follows it from change to change by the records alone; what it holds is always
what a full scan of that image would give. The order in which partitions come out is that in which they went
in, so that the same history gives the same decisions everywhere.
"""

from collections.abc import Iterable, Sequence

from mainstem.cluster.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from mainstem.cluster.records import (
    ClearElrRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
)

# A partition: the id of its topic, and its number.
Key = tuple[bytes, int]
_Keys = dict[Key, None]  # a set that keeps its order
_NONE: _Keys = {}


class PartitionIndex:
    """Made from an image by a scan; `follow` takes it to the next one."""

    def __init__(self, image: MetadataImage) -> None:
        self._topics = image.topics_by_id
        self._led: dict[int, _Keys] = {}
        self._in_sync: dict[int, _Keys] = {}
        self._eligible: dict[int, _Keys] = {}
        self.leaderless: _Keys = {}
        self.not_preferred: _Keys = {}
        self.reassigning: _Keys = {}
        for topic in self._topics.values():
            self._add_topic(topic)

    def describes(self, image: MetadataImage) -> bool:
        """Whether it is about the partitions of this very image."""
        return self._topics is image.topics_by_id

    def led_by(self, broker_id: int) -> _Keys:
        return self._led.get(broker_id, _NONE)

    def in_sync_with(self, broker_id: int) -> _Keys:
        """The partitions in whose in-sync replicas the broker is."""
        return self._in_sync.get(broker_id, _NONE)

    def eligible_with(self, broker_id: int) -> _Keys:
        """The partitions in whose eligible leader replicas the broker is."""
        return self._eligible.get(broker_id, _NONE)

    def brokers(self) -> Iterable[int]:
        """All brokers that lead or could lead something."""
        return {**self._led, **self._in_sync, **self._eligible}

    def rests_on(self, broker_id: int) -> list[Key]:
        """The partitions that have to do with the broker's being there."""
        return list(
            {**self.led_by(broker_id), **self.in_sync_with(broker_id), **self.eligible_with(broker_id)}
        )

    def follow(self, records: Sequence[MetadataRecord], image: MetadataImage) -> None:
        """Go on to the image that the records lead to from the one described so far."""
        old_topics, self._topics = self._topics, image.topics_by_id
        for key in self._touched(records):
            topic_id, number = key
            old, new = _partition(old_topics.get(topic_id), number), self._partition(key)
            if old is not new:
                if old is not None:
                    self._remove(key, old)
                if new is not None:
                    self._add(key, new)
        for record in records:
            if isinstance(record, RemoveTopicRecord) and record.topic_id in old_topics:
                for partition in old_topics[record.topic_id].partitions:
                    self._remove((record.topic_id, partition.partition), partition)

    def _touched(self, records: Sequence[MetadataRecord]) -> _Keys:
        touched: _Keys = {}
        removed = {record.topic_id for record in records if isinstance(record, RemoveTopicRecord)}
        for record in records:
            if isinstance(record, PartitionRecord | PartitionChangeRecord):
                if record.topic_id not in removed:
                    touched[record.topic_id, record.partition_id] = None
            elif isinstance(record, ClearElrRecord):
                for keys in self._eligible.values():
                    touched.update((key, None) for key in keys if key[0] not in removed)
        return touched

    def _partition(self, key: Key) -> PartitionImage | None:
        return _partition(self._topics.get(key[0]), key[1])

    def _add_topic(self, topic: TopicImage) -> None:
        for partition in topic.partitions:
            self._add((topic.topic_id, partition.partition), partition)

    def _add(self, key: Key, partition: PartitionImage) -> None:
        for table, brokers in self._places(partition):
            for broker_id in brokers:
                table.setdefault(broker_id, {})[key] = None
        for keys, belongs in self._states(partition):
            if belongs:
                keys[key] = None

    def _remove(self, key: Key, partition: PartitionImage) -> None:
        for table, brokers in self._places(partition):
            for broker_id in brokers:
                keys = table.get(broker_id, {})
                keys.pop(key, None)
                if not keys:
                    table.pop(broker_id, None)
        for keys, belongs in self._states(partition):
            if belongs:
                keys.pop(key, None)

    def _places(self, partition: PartitionImage) -> Sequence[tuple[dict[int, _Keys], Sequence[int]]]:
        return (
            (self._led, () if partition.leader == NO_LEADER else (partition.leader,)),
            (self._in_sync, partition.isr),
            (self._eligible, partition.eligible_leader_replicas),
        )

    def _states(self, partition: PartitionImage) -> Sequence[tuple[_Keys, bool]]:
        return (
            (self.leaderless, partition.leader == NO_LEADER),
            (self.not_preferred, partition.leader != partition.replicas[0]),
            (self.reassigning, bool(partition.adding_replicas or partition.removing_replicas)),
        )


def _partition(topic: TopicImage | None, number: int) -> PartitionImage | None:
    return topic.partitions[number] if topic is not None and number < len(topic.partitions) else None
