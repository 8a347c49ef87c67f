"""Committed offsets of groups of every kind: committing, reading and deleting them.

Who may commit is for the group to say. Offsets outlive their members: `OffsetCleanup` removes those that are
too old or whose topic is gone. Those of a transaction that is still open wait in `PendingOffsets`.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.offset_cleanup import OffsetCleanup
from mainstem.coordinator.group.offset_replay import OffsetReplay
from mainstem.coordinator.group.offset_store import (
    NO_EXPIRY,
    Change,
    CommittedOffset,
    OffsetStore,
    is_too_long,
)
from mainstem.coordinator.group.pending_offsets import PendingChange, PendingOffsets, Place
from mainstem.coordinator.group.state import GroupState
from mainstem.coordinator.group.transactional_commits import TransactionalCommits
from mainstem.protocol.apis.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from mainstem.protocol.apis.k09_offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from mainstem.protocol.apis.k42_delete_groups import DeletableGroupResult
from mainstem.protocol.apis.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.uuids import ZERO_UUID

# OffsetCommit from this version on tells a member that its group is not there.
_GROUP_ID_NOT_FOUND_VERSION = 9
_NO_RETENTION_TIME = -1
_LATEST_MS = 2**63 - 1


def refused_commit(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """One error for every partition of a commit, which has no other place for it."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [OffsetCommitResponsePartition(part.partition_index, error) for part in topic.partitions],
            )
            for topic in request.topics
        ]
    )


class Offsets:
    """The offsets of one machine."""

    def __init__(self, state: GroupState) -> None:
        self._state = state
        self.store = OffsetStore()
        self.pending = PendingOffsets()
        self._cleanup = OffsetCleanup(state, self.store, self.pending)
        self._loading = OffsetReplay(state, self.store, self.pending)
        commits = TransactionalCommits(state, self.store, self.pending)
        self.commit_transactional = commits.commit
        self.transaction_ended = commits.ended

    # ---- committing

    def commit(self, request: OffsetCommitRequest, version: int, token: Token, now_ms: int) -> None:
        """Topics must carry both name and id: the caller has looked them up."""
        state = self._state
        group_id = request.group_id
        created = group_id not in state.groups
        try:
            group = self._new_group(request, version) if created else state.groups[group_id]
            check = group.check_offset_commit(
                request.member_id,
                request.group_instance_id,
                request.generation_id_or_member_epoch,
                version,
                False,
            )
            if check is not None:
                self._check_partitions(request, check)
        except KafkaError as error:
            state.effects.reply(token, refused_commit(request, error.code))
            return
        group.offsets_committed(request.member_id, now_ms)
        changes: list[Change] = []
        state.effects.on_failure(partial(self._undo_commit, group_id, changes, group if created else None))
        if self.pending.by_group:
            self._overtake(request)
        state.effects.reply(token, self._apply(request, now_ms, changes))

    def _overtake(self, request: OffsetCommitRequest) -> None:
        """Of an older position in an open transaction only that it is there still counts."""
        before: list[PendingChange] = []
        self._state.effects.on_failure(partial(self.pending.restore, before))
        for topic in request.topics:
            for part in topic.partitions:
                if not is_too_long(part.committed_metadata, self._state.config):
                    place = Place(request.group_id, topic.name, part.partition_index)
                    before.append(self.pending.overtake(place))

    def _new_group(self, request: OffsetCommitRequest, version: int) -> Any:
        """A client without membership may commit to a group that nobody has made."""
        if request.generation_id_or_member_epoch < 0:
            return self._state.new_simple_group(request.group_id)
        if version >= _GROUP_ID_NOT_FOUND_VERSION:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)

    def _check_partitions(
        self, request: OffsetCommitRequest, check: Callable[[str, bytes, int], None]
    ) -> None:
        for topic in request.topics:
            for part in topic.partitions:
                if not is_too_long(part.committed_metadata, self._state.config):
                    check(topic.name, topic.topic_id, part.partition_index)

    def _apply(
        self, request: OffsetCommitRequest, now_ms: int, changes: list[Change]
    ) -> OffsetCommitResponse:
        """Put the offsets, write their records; what was there before goes into `changes`."""
        group_id = request.group_id
        expiry = _expiry(request.retention_time_ms, now_ms)
        write = self._state.effects.write
        topics: list[OffsetCommitResponseTopic] = []
        for topic in request.topics:
            name, topic_id = topic.name, topic.topic_id
            of_topic = None
            answers: list[OffsetCommitResponsePartition] = []
            for part in topic.partitions:
                index = part.partition_index
                metadata = part.committed_metadata
                if metadata and is_too_long(metadata, self._state.config):
                    error = ErrorCode.OFFSET_METADATA_TOO_LARGE
                    answers.append(OffsetCommitResponsePartition(index, error))
                    continue
                if of_topic is None:
                    of_topic = self.store.open(group_id, name)
                committed = CommittedOffset(
                    part.committed_offset,
                    part.committed_leader_epoch,
                    metadata or "",
                    now_ms,
                    expiry,
                    topic_id,
                )
                changes.append((name, index, of_topic.partitions.get(index)))
                write(of_topic.key(index), committed.encode())
                of_topic.partitions[index] = committed
                answers.append(OffsetCommitResponsePartition(index, 0))
            topics.append(OffsetCommitResponseTopic(name, topic_id, answers))
        return OffsetCommitResponse(topics=topics)

    def _undo_commit(self, group_id: str, changes: list[Change], created: Any) -> None:
        self.store.restore(group_id, changes)
        if created is not None:
            self._state.forget_group(created)

    # ---- reading

    def fetch(
        self, request: OffsetFetchRequestGroup, token: Token, now_ms: int, require_stable: bool = False
    ) -> None:
        """Answers with an OffsetFetchResponseGroup; no topics asked for means all of them.

        What it saw is committed by the time the reply leaves, whether or not stable offsets were required:
        only an open transaction makes them unstable.
        """
        group_id = request.group_id
        group = self._state.groups.get(group_id)
        answer = OffsetFetchResponseGroup(group_id)
        try:
            if group is not None:
                group.check_offset_fetch(request.member_id, request.member_epoch)
        except KafkaError as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                answer.error_code = error.code
                self._state.effects.reply(token, answer)
                return
            group = None
        unstable: Collection[Place] = self.pending.of_group(group_id) if require_stable else ()
        # A group that is not there has no offsets, which is no error.
        stored = self.store.of_group(group_id) if group is not None else {}
        if request.topics is None:
            for name, of_topic in stored.items():
                current_id = self._current_id(name)
                found = [
                    _position(index, committed)
                    if not unstable or Place(group_id, name, index) not in unstable
                    else _unstable(index)
                    for index, committed in of_topic.partitions.items()
                    if _of_the_same_topic(committed, current_id) is not None
                ]
                if found:
                    answer.topics.append(OffsetFetchResponseTopics(name, ZERO_UUID, found))
        else:
            for topic in request.topics:
                wanted = stored.get(topic.name)
                partitions = wanted.partitions if wanted is not None else {}
                topic_id = self._current_id(topic.name) if topic.topic_id == ZERO_UUID else topic.topic_id
                found = [
                    _position(index, _of_the_same_topic(partitions.get(index), topic_id))
                    if not unstable or Place(group_id, topic.name, index) not in unstable
                    else _unstable(index)
                    for index in topic.partition_indexes
                ]
                answer.topics.append(OffsetFetchResponseTopics(topic.name, topic.topic_id, found))
        self._state.effects.reply(token, answer)

    def _current_id(self, topic: str) -> bytes | None:
        info = self._state.topics.by_name(topic)
        return None if info is None else info.topic_id

    # ---- deleting

    def delete(self, request: OffsetDeleteRequest, token: Token, now_ms: int) -> None:
        """What open transactions say of an offset is deleted with it."""
        state = self._state
        response = OffsetDeleteResponse()
        try:
            group = state.groups.get(request.group_id)
            if group is None:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
            group.check_offset_delete()
        except KafkaError as error:
            state.effects.reply(token, OffsetDeleteResponse(error_code=error.code))
            return
        for topic in request.topics:
            if group.is_subscribed_to(topic.name):
                code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            else:
                code = ErrorCode.NONE
                self._cleanup.delete_in_topic(
                    request.group_id, topic.name, [part.partition_index for part in topic.partitions]
                )
            answers = [OffsetDeleteResponsePartition(part.partition_index, code) for part in topic.partitions]
            response.topics.append(OffsetDeleteResponseTopic(topic.name, answers))
        state.effects.reply(token, response)

    def delete_group(self, group_id: str, token: Token, now_ms: int) -> None:
        """Delete a group without members, and all its offsets. Answers with a DeletableGroupResult."""
        group = self._state.groups.get(group_id)
        try:
            if group is None:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
            group.check_delete()
        except KafkaError as error:
            self._state.effects.reply(token, DeletableGroupResult(group_id, error.code))
            return
        self._cleanup.delete_all(group_id)
        group.write_tombstones()
        self._state.effects.reply(token, DeletableGroupResult(group_id))

    # ---- the log and the time

    def replay(self, key: bytes, value: bytes | None) -> None:
        """One record of the log, with a key of one of `offset_replay.KEY_TYPES`."""
        self._loading.replay(key, value)

    def replay_transactional(self, producer_id: int, key: bytes, value: bytes | None) -> None:
        self._loading.replay_transactional(producer_id, key, value)

    def loaded(self, now_ms: int) -> None:
        self._loading = OffsetReplay(self._state, self.store, self.pending)  # forgets what only loading needs
        self._cleanup.loaded(now_ms)

    def topics_changed(self, now_ms: int) -> None:
        self._cleanup.topics_changed(now_ms)


def _expiry(retention_time_ms: int, now_ms: int) -> int:
    """When an offset with a retention time of its own goes. One that lies beyond what the record can hold is
    for ever; in Kafka it overflows into the past, and the offset goes at the next check.
    """
    if retention_time_ms == _NO_RETENTION_TIME:
        return NO_EXPIRY
    return min(now_ms + retention_time_ms, _LATEST_MS)


def _position(index: int, committed: CommittedOffset | None) -> OffsetFetchResponsePartitions:
    if committed is None:
        return OffsetFetchResponsePartitions(index, -1)
    return OffsetFetchResponsePartitions(index, committed.offset, committed.leader_epoch, committed.metadata)


def _unstable(index: int) -> OffsetFetchResponsePartitions:
    """An open transaction may still change it."""
    return OffsetFetchResponsePartitions(index, -1, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)


def _of_the_same_topic(committed: CommittedOffset | None, topic_id: bytes | None) -> CommittedOffset | None:
    """An offset in an older topic of the same name is none, nor is one in a topic that is not there any more
    (None), as far as its id is known. What is left of them in the store goes before long.
    """
    if committed is None or committed.topic_id in (topic_id, ZERO_UUID):
        return committed
    return None
