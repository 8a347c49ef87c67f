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
# What a partition is before it is made, and when it is gone: led by nobody, and not even without a leader.
_NOTHING = PartitionImage(-1, NO_LEADER - 1, 0, 0, (), ())


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
            for partition in topic.partitions:
                self._replace((topic.topic_id, partition.partition), _NOTHING, partition)

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
                self._replace(key, old or _NOTHING, new or _NOTHING)
        for record in records:
            if isinstance(record, RemoveTopicRecord) and record.topic_id in old_topics:
                for partition in old_topics[record.topic_id].partitions:
                    self._replace((record.topic_id, partition.partition), partition, _NOTHING)

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

    def _replace(self, key: Key, old: PartitionImage, new: PartitionImage) -> None:
        """Only what differs is touched: most changes are of one kind."""
        if old.leader != new.leader:
            _exchange(self._led, key, (old.leader,), (new.leader,))
            _put(self.leaderless, key, belongs=new is not _NOTHING and new.leader == NO_LEADER)
        if old.isr != new.isr:
            _exchange(self._in_sync, key, old.isr, new.isr)
        if old.eligible_leader_replicas != new.eligible_leader_replicas:
            _exchange(self._eligible, key, old.eligible_leader_replicas, new.eligible_leader_replicas)
        _put(self.not_preferred, key, belongs=new.leader != (new.replicas or (new.leader,))[0])
        _put(self.reassigning, key, belongs=bool(new.adding_replicas or new.removing_replicas))


def _exchange(table: dict[int, _Keys], key: Key, old: Sequence[int], new: Sequence[int]) -> None:
    for broker_id in old:
        if broker_id not in new and broker_id in table:
            keys = table[broker_id]
            keys.pop(key, None)
            if not keys:
                del table[broker_id]
    for broker_id in new:
        if broker_id >= 0:
            table.setdefault(broker_id, {})[key] = None


def _put(keys: _Keys, key: Key, *, belongs: bool) -> None:
    if belongs:
        keys[key] = None
    else:
        keys.pop(key, None)


def _partition(topic: TopicImage | None, number: int) -> PartitionImage | None:
    return topic.partitions[number] if topic is not None and number < len(topic.partitions) else None
