"""Topics and partitions, changed record by record.

The image's dictionaries are copied once per delta and only when something in them changes; of a topic's
partitions only those of touched topics are unpacked. So a delta costs what its records touch, plus one copy.
"""

from collections.abc import Sequence

from mainstem.cluster.image import MetadataImage, PartitionImage, TopicImage
from mainstem.cluster.records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from mainstem.cluster.topic_names import can_collide, normal_form
from mainstem.protocol.uuids import ZERO_UUID, uuid_to_text

LEADER_UNCHANGED = -2
RECOVERY_STATE_UNCHANGED = -1


class ReplayError(Exception):
    """A record that contradicts what was replayed before it: the log and the image no longer agree."""


class _TopicDelta:
    """A touched topic: its partitions unpacked."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: bytes, partitions: Sequence[PartitionImage]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = {partition.partition: partition for partition in partitions}

    def build(self) -> TopicImage:
        count = len(self.partitions)
        if any(index not in self.partitions for index in range(count)):
            raise ReplayError(f"topic {self.name} has gaps in its partition numbers")
        return TopicImage(self.name, self.topic_id, tuple(self.partitions[index] for index in range(count)))


class TopicsDelta:
    """What a run of records does to the topics of one image."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._touched: dict[bytes, _TopicDelta] = {}
        self._created_names: dict[str, bytes] = {}
        self._removed: dict[bytes, str] = {}
        # Most partitions of a cluster have one of few replica lists: each list is kept once.
        self._shared: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._shared_directories: dict[tuple[bytes, ...], tuple[bytes, ...]] = {}

    def replay_topic(self, record: TopicRecord) -> None:
        name, topic_id = record.name, record.topic_id
        taken = name in self._created_names or (
            name in self._image.topics_by_name
            and self._image.topics_by_name[name].topic_id not in self._removed
        )
        if taken:
            raise ReplayError(f"topic {name} is created, but it exists")
        if topic_id in self._touched or topic_id in self._image.topics_by_id:
            raise ReplayError(
                f"topic {name} is created with the id {uuid_to_text(topic_id)}, which is in use"
            )
        self._created_names[name] = topic_id
        self._touched[topic_id] = _TopicDelta(name, topic_id, ())

    def replay_partition(self, record: PartitionRecord) -> None:
        topic = self._topic(record.topic_id)
        topic.partitions[record.partition_id] = PartitionImage(
            record.partition_id,
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            self._ids(record.replicas),
            self._ids(record.isr),
            # Records from before directories were known name none.
            self._directories(record.directories or [ZERO_UUID] * len(record.replicas)),
            self._ids(record.removing_replicas),
            self._ids(record.adding_replicas),
            record.leader_recovery_state,
            self._ids(record.eligible_leader_replicas or []),
            self._ids(record.last_known_elr or []),
        )

    def replay_partition_change(self, record: PartitionChangeRecord) -> None:
        topic = self._topic(record.topic_id)
        old = topic.partitions.get(record.partition_id)
        if old is None:
            raise ReplayError(f"partition {topic.name}-{record.partition_id} changes, but it does not exist")
        elects = record.leader != LEADER_UNCHANGED
        recovery = record.leader_recovery_state
        replicas = self._changed(record.replicas, old.replicas)
        directories = old.directories
        if record.directories is not None:
            directories = self._directories(record.directories)
        elif record.replicas is not None:
            # A replica that stays keeps its directory; where a new one lives is not known yet.
            known = dict(zip(old.replicas, old.directories, strict=False))
            directories = self._directories([known.get(replica, ZERO_UUID) for replica in replicas])
        topic.partitions[record.partition_id] = PartitionImage(
            old.partition,
            record.leader if elects else old.leader,
            old.leader_epoch + 1 if elects else old.leader_epoch,
            old.partition_epoch + 1,
            replicas,
            self._changed(record.isr, old.isr),
            directories,
            self._changed(record.removing_replicas, old.removing_replicas),
            self._changed(record.adding_replicas, old.adding_replicas),
            old.leader_recovery_state if recovery == RECOVERY_STATE_UNCHANGED else recovery,
            self._changed(record.eligible_leader_replicas, old.eligible_leader_replicas),
            self._changed(record.last_known_elr, old.last_known_elr),
        )

    def replay_remove_topic(self, record: RemoveTopicRecord) -> str:
        """Returns the name of the topic, whose settings go with it."""
        topic = self._topic(record.topic_id)
        del self._touched[record.topic_id]
        if self._created_names.get(topic.name) == record.topic_id:
            del self._created_names[topic.name]
        if record.topic_id in self._image.topics_by_id:
            self._removed[record.topic_id] = topic.name
        return topic.name

    def replay_clear_elr(self, record: ClearElrRecord) -> None:
        if record.topic_name:
            chosen = [self._id_of(record.topic_name)]
        else:
            chosen = [topic_id for topic_id in self._image.topics_by_id if topic_id not in self._removed]
            chosen += [topic_id for topic_id in self._touched if topic_id not in self._image.topics_by_id]
        for topic_id in chosen:
            partitions = self._topic(topic_id).partitions
            for index, partition in partitions.items():
                if partition.eligible_leader_replicas or partition.last_known_elr:
                    change = PartitionChangeRecord(
                        index, topic_id, eligible_leader_replicas=[], last_known_elr=[]
                    )
                    self.replay_partition_change(change)

    def build(
        self,
    ) -> tuple[dict[str, TopicImage], dict[bytes, TopicImage], dict[str, tuple[str, ...]]] | None:
        """The new dictionaries by name, by id and by normal form; None when nothing changed."""
        if not self._touched and not self._removed:
            return None
        by_name, by_id = dict(self._image.topics_by_name), dict(self._image.topics_by_id)
        by_form = dict(self._image.names_by_normal_form)
        for topic_id, name in self._removed.items():
            del by_name[name], by_id[topic_id]
            _forget_form(by_form, name)
        for topic_id, touched in self._touched.items():
            if touched.name not in by_name and can_collide(touched.name):
                form = normal_form(touched.name)
                by_form[form] = (*by_form.get(form, ()), touched.name)
            by_name[touched.name] = by_id[topic_id] = touched.build()
        return by_name, by_id, by_form

    def removed(self) -> tuple[TopicImage, ...]:
        """Topics of the base image that are gone."""
        return tuple(self._image.topics_by_id[topic_id] for topic_id in self._removed)

    def touched_ids(self) -> tuple[bytes, ...]:
        """Topics that are new or changed."""
        return tuple(self._touched)

    def _topic(self, topic_id: bytes) -> _TopicDelta:
        touched = self._touched.get(topic_id)
        if touched is None:
            image = self._image.topics_by_id.get(topic_id)
            if image is None or topic_id in self._removed:
                raise ReplayError(
                    f"a record speaks of topic id {uuid_to_text(topic_id)}, which does not exist"
                )
            touched = _TopicDelta(image.name, topic_id, image.partitions)
            self._touched[topic_id] = touched
        return touched

    def _id_of(self, name: str) -> bytes:
        topic_id = self._created_names.get(name)
        if topic_id is None:
            image = self._image.topics_by_name.get(name)
            if image is None:
                raise ReplayError(f"a record speaks of topic {name}, which does not exist")
            topic_id = image.topic_id
        return topic_id

    def _ids(self, values: list[int]) -> tuple[int, ...]:
        key = tuple(values)
        return self._shared.setdefault(key, key)

    def _directories(self, values: list[bytes]) -> tuple[bytes, ...]:
        key = tuple(values)
        return self._shared_directories.setdefault(key, key)

    def _changed(self, new: list[int] | None, old: tuple[int, ...]) -> tuple[int, ...]:
        return old if new is None else self._ids(new)


def _forget_form(by_form: dict[str, tuple[str, ...]], name: str) -> None:
    if can_collide(name):
        form = normal_form(name)
        rest = tuple(other for other in by_form[form] if other != name)
        if rest:
            by_form[form] = rest
        else:
            del by_form[form]
