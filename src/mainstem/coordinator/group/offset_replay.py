"""Reads committed offsets back from the log, which holds far more records of theirs than of all else.

Most are of partitions that were committed again and again. What the keys of a topic have in common is decoded
once, and the usual value, one without a note, in one call.
"""

from typing import Final

from mainstem.coordinator.group.offset_store import CommittedOffset, OffsetStore, TopicOffsets, decode_usual
from mainstem.coordinator.group.pending_offsets import PendingOffsets, Place
from mainstem.coordinator.group.records import decode_key, decode_value
from mainstem.coordinator.group.records.offsets import OffsetCommitKey
from mainstem.coordinator.group.state import GroupState
from mainstem.protocol.uuids import ZERO_UUID

# The types that a key begins with: of the first form, which only very old brokers wrote, and of today's.
KEY_TYPES: Final = (b"\0\0", b"\0\1")
_PARTITION_SIZE: Final = 4


class OffsetReplay:
    """Puts the records of one log into a store, in their order."""

    def __init__(self, state: GroupState, store: OffsetStore, pending: PendingOffsets) -> None:
        self._state = state
        self._store = store
        self._pending = pending
        # By all of a key but its partition.
        self._open: dict[bytes, tuple[str, str, TopicOffsets]] = {}

    def replay(self, key: bytes, value: bytes | None) -> None:
        """ProtocolError when this is not the record of an offset."""
        known = self._open.get(key[:-_PARTITION_SIZE])
        if known is None:
            self._replay_first(key, value)
            return
        group_id, topic, of_topic = known
        partition = int.from_bytes(key[-_PARTITION_SIZE:], "big", signed=True)
        if value is None:
            self._delete(key, group_id, topic, partition)
        else:
            of_topic.partitions[partition] = self._decode(topic, value)
            self._ensure_group(group_id)
            if self._pending.by_group:
                self._pending.overtake(Place(group_id, topic, partition))

    def replay_transactional(self, producer_id: int, key: bytes, value: bytes | None) -> None:
        """The same for a record of a transaction, which may still be open. A deletion counts at once."""
        if value is None:
            self.replay(key, None)
            return
        decoded = decode_key(key)
        committed = self._decode(decoded.topic, value)
        self._ensure_group(decoded.group)
        self._pending.add(producer_id, Place(decoded.group, decoded.topic, decoded.partition), committed)

    def _replay_first(self, key: bytes, value: bytes | None) -> None:
        decoded = decode_key(key)
        group_id, topic = decoded.group, decoded.topic
        if value is None:
            self._delete(key, group_id, topic, decoded.partition)
            return
        committed = self._decode(topic, value)
        self._ensure_group(group_id)
        of_topic = self._store.open(group_id, topic)
        of_topic.partitions[decoded.partition] = committed
        self._open[key[:-_PARTITION_SIZE]] = (group_id, topic, of_topic)
        if self._pending.by_group:
            self._pending.overtake(Place(group_id, topic, decoded.partition))

    def _delete(self, key: bytes, group_id: str, topic: str, partition: int) -> None:
        self._store.put(group_id, topic, partition, None)
        if self._pending.by_group:
            self._pending.clear(Place(group_id, topic, partition))
        if topic not in self._store.of_group(group_id):
            for key_type in KEY_TYPES:  # the store has let go of it
                self._open.pop(key_type + key[2:-_PARTITION_SIZE], None)

    def _ensure_group(self, group_id: str) -> None:
        """An offset without a group is one that was committed without members."""
        if group_id not in self._state.groups:
            self._state.new_simple_group(group_id)

    def _decode(self, topic: str, value: bytes) -> CommittedOffset:
        usual = decode_usual(value)
        if usual is not None:
            return usual
        read = decode_value(OffsetCommitKey(), value)
        topic_id = read.topic_id
        if topic_id == ZERO_UUID:
            # As far as anybody knows it is one of the topic that has this name now, but not of a later one.
            info = self._state.topics.by_name(topic)
            topic_id = ZERO_UUID if info is None else info.topic_id
        return CommittedOffset(
            read.offset,
            read.leader_epoch,
            read.metadata,
            read.commit_timestamp,
            read.expire_timestamp,
            topic_id,
        )
