"""Removes committed offsets that nobody will ask for again: those that are too old, those of deleted topics.

It works in small steps, each an event of its own that writes far less than a batch may hold; what could not
be written is tried again. Whether a group's offsets age, and from when on, is for the group to say. Nothing
ages where a transaction is open; what is deleted there is deleted for the transaction too.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final, NamedTuple

from mainstem.coordinator.group.offset_store import NO_EXPIRY, Change, CommittedOffset, OffsetStore
from mainstem.coordinator.group.pending_offsets import PendingChange, PendingOffsets, Place
from mainstem.coordinator.group.state import GroupState
from mainstem.protocol.errors import KafkaError
from mainstem.protocol.uuids import ZERO_UUID

_EXPIRE: Final = ("offsets", "expire")
_CONTINUE: Final = ("offsets", "continue cleaning")
_TOMBSTONES_PER_EVENT: Final = 500
_BYTES_PER_EVENT: Final = 256 * 1024
# Most groups and topics have nothing to remove, but to find that out takes its time too.
_TASKS_PER_EVENT: Final = 1000
_RETRY_MS: Final = 10_000
_MINUTE_MS: Final = 60_000


class _Task(NamedTuple):
    """Look at one group: at the offsets of one topic, which has changed, or at the age of all of them."""

    group_id: str
    topic: str | None = None


class OffsetCleanup:
    """The housekeeping of one machine's offsets."""

    def __init__(self, state: GroupState, store: OffsetStore, pending: PendingOffsets) -> None:
        self._state = state
        self._store = store
        self._pending = pending
        # A set that keeps its order.
        self._tasks: dict[_Task, None] = {}
        # What this event may still write.
        self._tombstones_left = self._bytes_left = 0
        self._seen_version = -1
        self._seen_topic_ids: dict[str, bytes] = {}

    def loaded(self, now_ms: int) -> None:
        """Topics may have been deleted while nobody coordinated their groups."""
        self._arm(now_ms)
        self.topics_changed(now_ms)

    def _run(self, now_ms: int) -> None:
        """One event's worth of tasks."""
        begun: list[_Task] = []
        self._state.effects.on_failure(partial(self._try_again, begun, now_ms))
        self._tombstones_left, self._bytes_left = _TOMBSTONES_PER_EVENT, _BYTES_PER_EVENT
        while self._tasks and self._has_room() and len(begun) < _TASKS_PER_EVENT:
            task = next(iter(self._tasks))
            del self._tasks[task]
            begun.append(task)
            if not self._do(task, now_ms):
                self._tasks[task] = None
        if self._tasks:
            self._state.timers.schedule(_CONTINUE, now_ms + 1, self._run)

    def _has_room(self) -> bool:
        return self._tombstones_left > 0 and self._bytes_left > 0

    def _try_again(self, tasks: list[_Task], now_ms: int) -> None:
        self._tasks |= dict.fromkeys(tasks)
        self._state.timers.schedule(_CONTINUE, now_ms + _RETRY_MS, self._run)

    def _do(self, task: _Task, now_ms: int) -> bool:
        """Whether there is no more to do for it."""
        if task.topic is None:
            return self._expire_group(task.group_id, now_ms)
        return self._delete_others(task.group_id, task.topic)

    # ---- age

    def _arm(self, now_ms: int) -> None:
        """Look for old offsets after a while, and again and again."""
        interval_ms = self._state.config.get("offsets.retention.check.interval.ms")
        self._state.timers.schedule(_EXPIRE, now_ms + interval_ms, self._expire_and_arm)

    def _expire_and_arm(self, now_ms: int) -> None:
        self._arm(now_ms)
        self.expire(now_ms)

    def expire(self, now_ms: int) -> None:
        """Remove what is too old. A group that is empty and has no offsets left goes with them."""
        self._tasks |= {_Task(group_id): None for group_id in self._state.groups}
        self._run(now_ms)

    def _expire_group(self, group_id: str, now_ms: int) -> bool:
        group = self._state.groups.get(group_id)
        since_ms = None if group is None else group.offsets_expire_after()
        if group is None or since_ms is None:
            return True
        retention_ms = self._state.config.get("offsets.retention.minutes") * _MINUTE_MS
        old: list[Change] = [
            (topic, index, committed)
            for topic, of_topic in self._store.of_group(group_id).items()
            if not group.is_subscribed_to(topic)
            for index, committed in of_topic.partitions.items()
            if _is_expired(committed, since_ms, retention_ms, now_ms)
            and not self._pending.has(group_id, topic, index)
        ]
        if not self._delete_some(group_id, old):
            return False
        if not self._store.of_group(group_id) and not self._pending.of_group(group_id):
            try:
                group.check_delete()
            except KafkaError:
                pass  # it has members
            else:
                records = self._state.effects.records
                before = len(records)
                group.write_tombstones()
                self._tombstones_left -= len(records) - before
                self._bytes_left -= sum(len(key) for key, _ in records[before:])
        return True

    # ---- deleted topics

    def topics_changed(self, now_ms: int) -> None:
        """Remove the offsets of topics that are not there any more, or are others under an old name."""
        topics = self._state.topics
        if topics.version == self._seen_version:
            return
        self._seen_version = topics.version
        seen, self._seen_topic_ids = self._seen_topic_ids, {}
        groups_by_topic = {name: self._store.groups_of_topic(name) for name in self._store.topics()}
        pending: dict[str, dict[str, None]] = {}
        for place in self._pending.places():
            pending.setdefault(place.topic, {})[place.group_id] = None
        for name, waiting in pending.items():
            groups_by_topic[name] = dict.fromkeys((*groups_by_topic.get(name, ()), *waiting))
        for name, groups in groups_by_topic.items():
            info = topics.by_name(name)
            if info is not None:
                self._seen_topic_ids[name] = info.topic_id
            if info is None or info.topic_id != seen.get(name):
                self._tasks |= {_Task(group_id, name): None for group_id in groups}
        if self._tasks:
            self._state.timers.schedule(_CONTINUE, now_ms, self._run)

    def _delete_others(self, group_id: str, topic: str) -> bool:
        info = self._state.topics.by_name(topic)
        kept_ids = () if info is None else (info.topic_id, ZERO_UUID)
        of_topic = self._store.of_group(group_id).get(topic)
        partitions = of_topic.partitions if of_topic is not None else {}
        others = {index for index, committed in partitions.items() if committed.topic_id not in kept_ids}
        others |= {
            place.partition
            for place, positions in self._pending.of_group(group_id).items()
            if place.topic == topic
            and any(known is not None and known.topic_id not in kept_ids for known in positions.values())
        }
        return self._delete_some(group_id, self._changes(group_id, topic, sorted(others)))

    # ---- tombstones

    def delete_all(self, group_id: str) -> None:
        """All offsets of a group, in one event."""
        partitions = {
            topic: dict.fromkeys(of_topic.partitions)
            for topic, of_topic in self._store.of_group(group_id).items()
        }
        for place in self._pending.of_group(group_id):
            partitions.setdefault(place.topic, {})[place.partition] = None
        for topic, indexes in partitions.items():
            self._delete(group_id, self._changes(group_id, topic, indexes))

    def delete_in_topic(self, group_id: str, topic: str, partitions: Iterable[int]) -> None:
        """Those that are there."""
        changes = self._changes(group_id, topic, dict.fromkeys(partitions))
        self._delete(
            group_id,
            [
                (topic, index, committed)
                for topic, index, committed in changes
                if committed is not None or self._pending.has(group_id, topic, index)
            ],
        )

    def _changes(self, group_id: str, topic: str, partitions: Iterable[int]) -> list[Change]:
        return [(topic, index, self._store.get(group_id, topic, index)) for index in partitions]

    def _delete_some(self, group_id: str, changes: list[Change]) -> bool:
        """As many as this event may; whether these were all."""
        count = 0
        for topic, index, _ in changes:
            if not self._has_room():
                break
            count += 1
            self._tombstones_left -= 1
            self._bytes_left -= len(self._store.key(group_id, topic, index))
        self._delete(group_id, changes[:count])
        return count == len(changes)

    def _delete(self, group_id: str, changes: list[Change]) -> None:
        effects = self._state.effects
        if changes:
            effects.on_failure(partial(self._store.restore, group_id, changes))
        for topic, index, _ in changes:
            effects.write(self._store.key(group_id, topic, index), None)
            self._store.put(group_id, topic, index, None)
        if self._pending.by_group:
            before: list[PendingChange] = []
            effects.on_failure(partial(self._pending.restore, before))
            before += [self._pending.clear(Place(group_id, topic, index)) for topic, index, _ in changes]


def _is_expired(committed: CommittedOffset, since_ms: int, retention_ms: int, now_ms: int) -> bool:
    if committed.expire_timestamp != NO_EXPIRY:
        return now_ms >= committed.expire_timestamp
    start_ms = committed.commit_timestamp if since_ms < 0 else since_ms
    return now_ms - start_ms >= retention_ms
