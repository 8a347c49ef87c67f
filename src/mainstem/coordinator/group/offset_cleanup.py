"""Removes committed offsets that nobody will ask for again: those that are too old, those of deleted topics.

It works in small steps, so that no event writes more than a batch may hold; the rest follows a moment later.
Whether a group's offsets age, and from when on, is for the group to say.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from mainstem.coordinator.group.offset_store import NO_EXPIRY, Change, CommittedOffset, OffsetStore
from mainstem.coordinator.group.state import GroupState
from mainstem.protocol.errors import KafkaError
from mainstem.protocol.uuids import ZERO_UUID

_EXPIRE: Final = ("offsets", "expire")
_CONTINUE: Final = ("offsets", "continue cleaning")
_TOMBSTONES_PER_STEP: Final = 500
_MINUTE_MS: Final = 60_000


class OffsetCleanup:
    """The housekeeping of one machine's offsets."""

    __slots__ = ("_seen_topic_ids", "_seen_version", "_state", "_steps", "_store")

    def __init__(self, state: GroupState, store: OffsetStore) -> None:
        self._state = state
        self._store = store
        # Each does something for one group and returns the number of records that it wrote.
        self._steps: deque[Callable[[int], int]] = deque()
        self._seen_version = -1
        self._seen_topic_ids: dict[str, bytes] = {}

    def _run(self, now_ms: int) -> None:
        written = 0
        while self._steps:
            if written >= _TOMBSTONES_PER_STEP:
                self._state.timers.schedule(_CONTINUE, now_ms + 1, self._run)
                return
            written += self._steps.popleft()(now_ms)

    # ---- age

    def arm(self, now_ms: int) -> None:
        """Look for old offsets after a while, and again and again."""
        interval_ms = self._state.config.get("offsets.retention.check.interval.ms")
        self._state.timers.schedule(_EXPIRE, now_ms + interval_ms, self._expire_and_arm)

    def _expire_and_arm(self, now_ms: int) -> None:
        self.arm(now_ms)
        self.expire(now_ms)

    def expire(self, now_ms: int) -> None:
        """Remove what is too old. A group that is empty and has no offsets left goes with them."""
        self._steps += [partial(self._expire_group, group_id) for group_id in self._state.groups]
        self._run(now_ms)

    def _expire_group(self, group_id: str, now_ms: int) -> int:
        group = self._state.groups.get(group_id)
        if group is None:
            return 0
        records = self._state.effects.records
        before = len(records)
        since_ms = group.offsets_expire_after()
        if since_ms is not None:
            retention_ms = self._state.config.get("offsets.retention.minutes") * _MINUTE_MS
            old: list[Change] = [
                (topic, index, committed)
                for topic, of_topic in self._store.of_group(group_id).items()
                if not group.is_subscribed_to(topic)
                for index, committed in of_topic.partitions.items()
                if _is_expired(committed, since_ms, retention_ms, now_ms)
            ]
            self._delete_some(group_id, old, partial(self._expire_group, group_id))
        if not self._store.of_group(group_id):
            try:
                group.check_delete()
            except KafkaError:
                pass  # it has members
            else:
                group.write_tombstones()
        return len(records) - before

    # ---- deleted topics

    def topics_changed(self, now_ms: int) -> None:
        """Remove the offsets of topics that are not there any more, or are others under an old name."""
        topics = self._state.topics
        if topics.version == self._seen_version:
            return
        self._seen_version = topics.version
        seen, self._seen_topic_ids = self._seen_topic_ids, {}
        for name in self._store.topics():
            info = topics.by_name(name)
            before = seen.get(name, ZERO_UUID)
            if info is not None:
                self._seen_topic_ids[name] = info.topic_id
            if info is None or info.topic_id != before:
                # An offset without an id is one of the former topic if there was a former one.
                kept_ids = {info.topic_id} if info is not None else set()
                if info is not None and before == ZERO_UUID:
                    kept_ids.add(ZERO_UUID)
                groups = self._store.groups_of_topic(name)
                self._steps += [partial(self._delete_others, group, name, kept_ids) for group in groups]
        self._run(now_ms)

    def _delete_others(self, group_id: str, topic: str, kept_ids: set[bytes], now_ms: int) -> int:
        of_topic = self._store.of_group(group_id).get(topic)
        if of_topic is None:
            return 0
        gone: list[Change] = [
            (topic, index, committed)
            for index, committed in of_topic.partitions.items()
            if committed.topic_id not in kept_ids
        ]
        return self._delete_some(group_id, gone, partial(self._delete_others, group_id, topic, kept_ids))

    # ---- tombstones

    def delete_all(self, group_id: str) -> None:
        """All offsets of a group, in one event."""
        stored = self._store.of_group(group_id)
        self._delete(
            group_id,
            [
                (topic, index, committed)
                for topic, of_topic in stored.items()
                for index, committed in of_topic.partitions.items()
            ],
        )

    def _delete_some(self, group_id: str, changes: list[Change], again: Callable[[int], int]) -> int:
        """As many as one step may; `again` is the next step if more are left."""
        if len(changes) > _TOMBSTONES_PER_STEP:
            changes = changes[:_TOMBSTONES_PER_STEP]
            self._steps.appendleft(again)
        self._delete(group_id, changes)
        return len(changes)

    def _delete(self, group_id: str, changes: list[Change]) -> None:
        effects = self._state.effects
        if changes:
            effects.on_failure(partial(self._store.restore, group_id, changes))
        for topic, index, _ in changes:
            effects.write(self._store.of_group(group_id)[topic].key(index), None)
            self._store.put(group_id, topic, index, None)


def _is_expired(committed: CommittedOffset, since_ms: int, retention_ms: int, now_ms: int) -> bool:
    if committed.expire_timestamp != NO_EXPIRY:
        return now_ms >= committed.expire_timestamp
    start_ms = committed.commit_timestamp if since_ms < 0 else since_ms
    return now_ms - start_ms >= retention_ms
