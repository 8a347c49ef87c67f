"""Offsets that a producer commits for a group as a part of its transaction (KIP-98, KIP-447).

They are checked and written when they come, and count when the transaction is committed. The group's answer
to who may commit is the same as to members, but a client that says nothing of itself is let through: before
KIP-447 producers did not know whom they worked for.
"""

from functools import partial
from typing import Any

from mainstem.coordinator.effects import CoordinatorRecord, Token
from mainstem.coordinator.group.offset_store import CommittedOffset, OffsetStore, is_too_long
from mainstem.coordinator.group.pending_offsets import PendingChange, PendingOffsets, Place
from mainstem.coordinator.group.state import GroupState, PartitionCheck
from mainstem.protocol.apis.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.uuids import ZERO_UUID


def refused_commit(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    """One error for every partition, which is the only place for it."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [TxnOffsetCommitResponsePartition(part.partition_index, error) for part in topic.partitions],
            )
            for topic in request.topics
        ]
    )


class TransactionalCommits:
    """The way of offsets through transactions."""

    def __init__(self, state: GroupState, store: OffsetStore, pending: PendingOffsets) -> None:
        self._state = state
        self._store = store
        self._pending = pending

    def commit(
        self, request: TxnOffsetCommitRequest, version: int, token: Token, now_ms: int, guard: Any = None
    ) -> None:
        """The transaction is known to be open: the caller has asked its coordinator, and has the log's
        `guard` that it was still open afterwards.
        """
        state = self._state
        group_id = request.group_id
        created = group_id not in state.groups
        try:
            group = self._new_group(request) if created else state.groups[group_id]
            check = group.check_offset_commit(
                request.member_id, request.group_instance_id, request.generation_id, version, True
            )
            if check is not None:
                self._check_partitions(request, check)
        except KafkaError as error:
            # Producers know of generations only.
            stale = error.code == ErrorCode.STALE_MEMBER_EPOCH
            code = ErrorCode.ILLEGAL_GENERATION if stale else error.code
            state.effects.reply(token, refused_commit(request, code))
            return
        changes: list[PendingChange] = []
        state.effects.on_failure(partial(self._undo, changes, group if created else None))
        records: list[CoordinatorRecord] = []
        topics = [self._apply(request, topic, now_ms, records, changes) for topic in request.topics]
        state.effects.write_transactional(request.producer_id, request.producer_epoch, records, guard)
        state.effects.reply(token, TxnOffsetCommitResponse(topics=topics))

    def _new_group(self, request: TxnOffsetCommitRequest) -> Any:
        """A client without membership may commit to a group that nobody has made."""
        if request.generation_id < 0:
            return self._state.new_simple_group(request.group_id)
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)

    def _check_partitions(self, request: TxnOffsetCommitRequest, check: PartitionCheck) -> None:
        for topic in request.topics:
            topic_id = self._topic_id(topic.name)
            for part in topic.partitions:
                if not is_too_long(part.committed_metadata, self._state.config):
                    check(topic.name, topic_id, part.partition_index)

    def _apply(
        self,
        request: TxnOffsetCommitRequest,
        topic: TxnOffsetCommitRequestTopic,
        now_ms: int,
        records: list[CoordinatorRecord],
        changes: list[PendingChange],
    ) -> TxnOffsetCommitResponseTopic:
        """Keep the offsets of one topic for the end of the transaction."""
        group_id, producer_id = request.group_id, request.producer_id
        name, topic_id = topic.name, self._topic_id(topic.name)
        of_topic = self._store.look(group_id, name)
        answer = TxnOffsetCommitResponseTopic(name, [])
        for part in topic.partitions:
            index, metadata = part.partition_index, part.committed_metadata
            if metadata and is_too_long(metadata, self._state.config):
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
                answer.partitions.append(TxnOffsetCommitResponsePartition(index, error))
                continue
            committed = CommittedOffset(
                part.committed_offset, part.committed_leader_epoch, metadata or "", now_ms, topic_id=topic_id
            )
            records.append((of_topic.key(index), committed.encode()))
            changes.append(self._pending.add(producer_id, Place(group_id, name, index), committed))
            answer.partitions.append(TxnOffsetCommitResponsePartition(index, 0))
        return answer

    def _topic_id(self, topic: str) -> bytes:
        info = self._state.topics.by_name(topic)
        return ZERO_UUID if info is None else info.topic_id

    def _undo(self, changes: list[PendingChange], created: Any) -> None:
        self._pending.restore(changes)
        if created is not None:
            self._state.forget_group(created)

    def ended(self, producer_id: int, commit: bool) -> None:
        """The marker is in the log: what waited for it counts from now on, or never."""
        for place, committed in self._pending.end(producer_id, commit):
            self._store.put(*place, committed)
