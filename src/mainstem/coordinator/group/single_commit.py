"""A commit of one partition without metadata, as a consumer repeats it with other offsets.

It does what `Offsets.commit` does for such a request. Whatever is not an ordinary success it leaves to that.
"""

from functools import partial
from typing import Any

from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.offset_store import CommittedOffset, OffsetStore
from mainstem.coordinator.group.offsets import Offsets
from mainstem.coordinator.group.state import GroupState
from mainstem.protocol.apis.k08_offset_commit import OffsetCommitRequest
from mainstem.protocol.errors import KafkaError


class SingleCommit:
    """All of a request but its offset and leader epoch."""

    __slots__ = (
        "_generation",
        "_group_id",
        "_index",
        "_instance_id",
        "_member_id",
        "_topic",
        "_topic_id",
        "_version",
    )

    def __init__(self, request: OffsetCommitRequest, version: int) -> None:
        (topic,) = request.topics
        (part,) = topic.partitions
        self._group_id = request.group_id
        self._member_id = request.member_id
        self._instance_id = request.group_instance_id
        self._generation = request.generation_id_or_member_epoch
        self._version = version
        self._topic, self._topic_id = topic.name, topic.topic_id
        self._index = part.partition_index
        assert not part.committed_metadata

    def apply(
        self,
        state: GroupState,
        offsets: Offsets,
        offset: int,
        leader_epoch: int,
        token: Token,
        response: Any,
        now_ms: int,
    ) -> bool:
        """Commit and answer with this response; False when it has to go the ordinary way."""
        group = state.groups.get(self._group_id)
        if group is None:
            return False
        try:
            check = group.check_offset_commit(
                self._member_id, self._instance_id, self._generation, self._version, False
            )
            if check is not None:
                check(self._topic, self._topic_id, self._index)
        except KafkaError:
            return False
        pending = offsets.pending
        if pending.by_group and pending.has(self._group_id, self._topic, self._index):
            return False
        group.offsets_committed(self._member_id, now_ms)
        committed = CommittedOffset(offset, leader_epoch, "", now_ms, topic_id=self._topic_id)
        value = committed.encode()  # before anything changes: it may raise
        of_topic = offsets.store.open(self._group_id, self._topic)
        before = of_topic.partitions.get(self._index)
        of_topic.partitions[self._index] = committed
        effects = state.effects
        effects.records.append((of_topic.key(self._index), value))
        effects.undo.append(partial(self._undo, offsets.store, before))
        effects.replies.append((token, response))
        return True

    def _undo(self, store: OffsetStore, before: CommittedOffset | None) -> None:
        store.put(self._group_id, self._topic, self._index, before)
