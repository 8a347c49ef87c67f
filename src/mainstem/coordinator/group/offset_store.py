"""Committed offsets as a coordinator keeps them: by group, topic and partition, with their records' bytes.

The keys of one topic in one group differ in their last four bytes only, and the usual value has one fixed
layout, so that a commit packs little more than its numbers. The bytes are those of `records.encode_key` and
`records.encode_value`.
"""

from collections.abc import Iterable, Iterator
from struct import Struct as Packer
from typing import Final

from msgspec import Struct

from mainstem.config import BrokerConfig
from mainstem.coordinator.group.records import encode_key, encode_value
from mainstem.coordinator.group.records.offsets import OffsetCommitKey, OffsetCommitValue
from mainstem.protocol.primitives import write_uvarint
from mainstem.protocol.uuids import ZERO_UUID

NO_EXPIRY: Final = -1
_OWN_EXPIRY_VERSION: Final = 1
_PARTITION: Final = Packer(">i")
# Version 4: offset and leader epoch; the note; the commit's time, then one tagged field, the topic id.
_HEAD: Final = Packer(">hqi")
_TAIL: Final = Packer(">qBBB16s")
_WITHOUT_NOTE: Final = Packer(">hqiBqBBB16s")


class CommittedOffset(Struct, frozen=True, gc=False):
    """One position of a group. The zero id stands for a topic whose id is not known. Records with an expiry,
    and old ones, have no place for it.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = NO_EXPIRY
    topic_id: bytes = ZERO_UUID

    def encode(self) -> bytes:
        """The value of its record."""
        if self.expire_timestamp != NO_EXPIRY or self.topic_id == ZERO_UUID:
            return self._encode_any()
        if not self.metadata:
            return _WITHOUT_NOTE.pack(
                4, self.offset, self.leader_epoch, 1, self.commit_timestamp, 1, 0, 16, self.topic_id
            )
        note = self.metadata.encode()
        return b"".join(
            (
                _HEAD.pack(4, self.offset, self.leader_epoch),
                write_uvarint(len(note) + 1),
                note,
                _TAIL.pack(self.commit_timestamp, 1, 0, 16, self.topic_id),
            )
        )

    def _encode_any(self) -> bytes:
        value = OffsetCommitValue(
            self.offset,
            self.leader_epoch,
            self.metadata,
            self.commit_timestamp,
            self.expire_timestamp,
            self.topic_id,
        )
        # Only the first version has an expiry of its own; it has neither leader epoch nor topic id.
        return encode_value(value, None if self.expire_timestamp == NO_EXPIRY else _OWN_EXPIRY_VERSION)


def is_too_long(note: str | None, config: BrokerConfig) -> bool:
    """Whether a note is longer than a commit may have it, as Java counts: in units of UTF-16."""
    units_max: int = config.get("offset.metadata.max.bytes")
    if not note or len(note) * 2 <= units_max:
        return False
    return len(note.encode("utf-16-le")) // 2 > units_max


def decode_usual(value: bytes) -> CommittedOffset | None:
    """The offset of a value as commits without a note are written today, or None."""
    if len(value) != _WITHOUT_NOTE.size:
        return None
    version, offset, leader_epoch, note, time_ms, tags, tag, size, topic_id = _WITHOUT_NOTE.unpack(value)
    if (version, note, tags, tag, size) != (4, 1, 1, 0, 16):
        return None
    return CommittedOffset(offset, leader_epoch, "", time_ms, NO_EXPIRY, topic_id)


class TopicOffsets:
    """One group's offsets in one topic, by partition."""

    __slots__ = ("_key_prefix", "partitions")

    def __init__(self, group_id: str, topic: str) -> None:
        self._key_prefix = encode_key(OffsetCommitKey(group_id, topic, 0))[: -_PARTITION.size]
        self.partitions: dict[int, CommittedOffset] = {}

    def key(self, partition: int) -> bytes:
        """The key of this partition's record."""
        return self._key_prefix + _PARTITION.pack(partition)


# Where an offset stood before an event, or None where there was none.
Change = tuple[str, int, CommittedOffset | None]


class OffsetStore:
    """All offsets of one coordinator. No empty group or topic is kept."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, TopicOffsets]] = {}
        # The inner dictionaries are sets that keep their order.
        self._groups_by_topic: dict[str, dict[str, None]] = {}

    def of_group(self, group_id: str) -> dict[str, TopicOffsets]:
        """By topic. Not to be changed by the caller."""
        return self._groups.get(group_id) or {}

    def topics(self) -> Iterator[str]:
        """Every topic with an offset of some group."""
        return iter(self._groups_by_topic)

    def groups_of_topic(self, topic: str) -> Iterable[str]:
        return self._groups_by_topic.get(topic, ())

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        of_topic = self.of_group(group_id).get(topic)
        return None if of_topic is None else of_topic.partitions.get(partition)

    def look(self, group_id: str, topic: str) -> TopicOffsets:
        """Not to put offsets into: it is not kept when there are none."""
        return self.of_group(group_id).get(topic) or TopicOffsets(group_id, topic)

    def key(self, group_id: str, topic: str, partition: int) -> bytes:
        """The key of a record of this partition, whether or not there is an offset."""
        return self.look(group_id, topic).key(partition)

    def open(self, group_id: str, topic: str) -> TopicOffsets:
        """To put offsets into, at least one."""
        topics = self._groups.get(group_id)
        if topics is None:
            topics = self._groups[group_id] = {}
        of_topic = topics.get(topic)
        if of_topic is None:
            of_topic = topics[topic] = TopicOffsets(group_id, topic)
            self._groups_by_topic.setdefault(topic, {})[group_id] = None
        return of_topic

    def put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset | None) -> None:
        """Set an offset, or take it away with None."""
        if committed is not None:
            self.open(group_id, topic).partitions[partition] = committed
            return
        of_topic = self.of_group(group_id).get(topic)
        if of_topic is not None:
            of_topic.partitions.pop(partition, None)
            if not of_topic.partitions:
                self._forget(group_id, topic)

    def restore(self, group_id: str, changes: list[Change]) -> None:
        """Take back the changes of one event."""
        for topic, partition, before in reversed(changes):
            self.put(group_id, topic, partition, before)

    def _forget(self, group_id: str, topic: str) -> None:
        topics = self._groups[group_id]
        del topics[topic]
        if not topics:
            del self._groups[group_id]
        groups = self._groups_by_topic[topic]
        del groups[group_id]
        if not groups:
            del self._groups_by_topic[topic]
