"""TxnOffsetCommit (key 28), versions 0 to 5: a producer commits offsets of a group in its transaction.

v2 leader epochs; v3 says which member the producer works for (KIP-447); v4 knows TRANSACTION_ABORTABLE; from
v5 on the broker adds the group's partition of `__consumer_offsets` to the transaction, before that it only
makes sure that the client has done so (KIP-890). As in Kafka, partitions that are refused here come first in
the answer, then those that the coordinator answered for.
"""

from typing import TYPE_CHECKING, Any, Final

from mainstem.broker.apis import Api
from mainstem.broker.coordination.internal_topics import CONSUMER_OFFSETS
from mainstem.broker.coordination.pending_replies import client_error
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.pending import Pending
from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.coordinator.group.transactional_commits import refused_commit
from mainstem.protocol.apis.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import NO_SEQUENCE
from mainstem.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from mainstem.storage.producers.verification import VerificationGuard

API: Final = Api("broker")
_LOADING_VERSION = 2  # clients of versions before it stop at COORDINATOR_LOAD_IN_PROGRESS
_ADDING_VERSION = 5
_Answers = dict[str, TxnOffsetCommitResponseTopic]


def handle(ctx: RequestContext, request: TxnOffsetCommitRequest) -> Any:
    if not ctx.authorize(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return refused_commit(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not ctx.authorize(Operation.READ, ResourceType.GROUP, request.group_id):
        return refused_commit(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    answers: _Answers = {}
    request.topics = _accepted(ctx, request, answers)
    if not request.topics:
        return TxnOffsetCommitResponse(topics=list(answers.values()))
    commit = _Commit(ctx, request, answers)
    if not request.group_id:
        commit.fail(ErrorCode.INVALID_GROUP_ID)
    else:
        commit.run()
    return commit.outcome()


def _accepted(
    ctx: RequestContext, request: TxnOffsetCommitRequest, refused: _Answers
) -> list[TxnOffsetCommitRequestTopic]:
    """The partitions that there are and that the client may read; the others go into `refused`."""
    accepted: list[TxnOffsetCommitRequestTopic] = []
    for topic in request.topics:
        if not ctx.authorize(Operation.READ, ResourceType.TOPIC, topic.name):
            _refuse(refused, topic.name, topic.partitions, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            continue
        image = ctx.broker.image.topics_by_name.get(topic.name)
        count = 0 if image is None else len(image.partitions)
        known = [part for part in topic.partitions if 0 <= part.partition_index < count]
        if image is None or len(known) < len(topic.partitions):
            unknown = [part for part in topic.partitions if not 0 <= part.partition_index < count]
            _refuse(refused, topic.name, unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if known:
            accepted.append(TxnOffsetCommitRequestTopic(topic.name, known))
    return accepted


def _refuse(
    refused: _Answers, name: str, partitions: list[TxnOffsetCommitRequestPartition], error: ErrorCode
) -> None:
    parts = [TxnOffsetCommitResponsePartition(part.partition_index, error) for part in partitions]
    refused.setdefault(name, TxnOffsetCommitResponseTopic(name, [])).partitions += parts


class _Commit:
    """One commit on its way: first to the transaction's coordinator, then to the group's."""

    def __init__(self, ctx: RequestContext, request: TxnOffsetCommitRequest, answers: _Answers) -> None:
        self._ctx = ctx
        self._request = request
        self._answers = answers
        self._pending = Pending(ctx, lambda error: refused_commit(request, error))
        self._guard: VerificationGuard | None = None
        self._index = -1

    def run(self) -> None:
        """Make sure that the partition belongs to the transaction, unless the log knows that it does."""
        ctx, request, broker = self._ctx, self._request, self._ctx.broker
        adds = ctx.version >= _ADDING_VERSION
        self._index = broker.groups.partition_of(request.group_id)
        if not adds and not broker.config.get("transaction.partition.verification.enable"):
            # Without a producer it would be a transaction that nobody could end.
            is_anybodys = request.producer_id < 0 or request.producer_epoch < 0
            self._submit(ErrorCode.INVALID_PRODUCER_ID_MAPPING if is_anybodys else ErrorCode.NONE)
            return
        try:
            partition = broker.replicas.by_topic(CONSUMER_OFFSETS, self._index)
            self._guard = partition.needs_verification(
                request.producer_id, request.producer_epoch, NO_SEQUENCE
            )
        except KafkaError as error:
            self.fail(client_error(error.code))
            return
        if self._guard is None:
            self._submit(ErrorCode.NONE)
            return
        broker.transactions.add_partitions(
            ctx,
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [(CONSUMER_OFFSETS, self._index)],
            verify_only=not adds,
            then=self._submit,
        )

    def _submit(self, verdict: ErrorCode) -> None:
        """The transaction's coordinator has answered."""
        if verdict:
            self.fail(client_error(verdict))
        else:
            self._ctx.broker.groups.shell.submit(self._index, self, self._commit)

    def _commit(self, machine: GroupCoordinator, token: Token, now_ms: int) -> None:
        machine.offsets.commit_transactional(self._request, self._ctx.version, token, now_ms, self._guard)

    # ---- as the token of the event

    def reply(self, response: TxnOffsetCommitResponse) -> None:
        for topic in response.topics:
            known = self._answers.setdefault(topic.name, topic)
            if known is not topic:
                known.partitions += topic.partitions
        self._pending.reply(TxnOffsetCommitResponse(topics=list(self._answers.values())))

    def fail(self, error: ErrorCode) -> None:
        if error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and self._ctx.version < _LOADING_VERSION:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        self.reply(refused_commit(self._request, error))

    def outcome(self) -> Any:
        return self._pending.outcome()
