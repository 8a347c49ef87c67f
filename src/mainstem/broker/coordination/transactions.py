"""The node's transaction coordinators, one for each partition of `__transaction_state` that it leads."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mainstem.broker.coordination.coordinators import Coordinators
from mainstem.broker.coordination.image_topics import ImageTopics
from mainstem.broker.coordination.internal_topics import TRANSACTION_STATE
from mainstem.broker.coordination.marker_sender import NOBODY, MarkerSender
from mainstem.broker.logs.partition import Partition
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.pending import Fail, Pending
from mainstem.coordinator.effects import Token
from mainstem.coordinator.transaction.coordinator import NEEDS_PRODUCER_ID, TransactionCoordinator
from mainstem.coordinator.transaction.known_errors import TXN_OFFSET_COMMIT, as_known
from mainstem.coordinator.transaction.listing import Counts
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.resources import TopicPartition
from mainstem.records.compression import Codec

if TYPE_CHECKING:
    from mainstem.broker.coordination.coordinator_questions import CoordinatorQuestions
    from mainstem.broker.coordination.node_coordinators import NodeCoordinators

# An event that may need a producer id which nobody had before: it is given one when it asks for it.
NumberedEvent = Callable[[TransactionCoordinator, int | None, Token, int], None]
Verdicts = dict[TopicPartition, ErrorCode]


class TransactionCoordinators(Coordinators[TransactionCoordinator]):
    """All transactional ids that this node coordinates."""

    def __init__(self, coordinators: "NodeCoordinators") -> None:
        server = coordinators.server
        self._topics = ImageTopics(server.metadata_cache)
        self._markers = MarkerSender(coordinators)
        self._producer_ids = coordinators.producer_ids
        self._tasks: set[asyncio.Task[None]] = set()
        self._questions: CoordinatorQuestions | None = None
        load_buffer_bytes = server.config.get("transaction.state.log.load.buffer.size")
        super().__init__(
            server,
            coordinators.replicas,
            TRANSACTION_STATE,
            "transaction.state.log",
            Codec.NONE,
            load_buffer_bytes,
        )
        self.shell.after_turn = self._markers.send

    def _new_machine(self, partition: Partition) -> TransactionCoordinator:
        return TransactionCoordinator(
            self._server.config,
            self._topics,
            coordinator_epoch=partition.leader_epoch,
            markers=self._markers,
        )

    def _topic_configs(self, replicas: int) -> dict[str, str]:
        return {
            "compression.type": "uncompressed",
            "unclean.leader.election.enable": "false",
            "min.insync.replicas": str(
                min(self._server.config.get("transaction.state.log.min.isr"), replicas)
            ),
        }

    # ---- for the request handlers

    def submit_numbered(
        self, ctx: RequestContext, transactional_id: str, event: NumberedEvent, fail: Fail
    ) -> Any:
        """`submit`, for an event that may need a fresh producer id."""
        pending = Pending(ctx, fail)
        numbered = _Numbered(self, transactional_id, event, pending)
        numbered.submit(None)
        return pending.outcome()

    def decide(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        places: list[TopicPartition],
        *,
        verify_only: bool,
        transaction_version: int,
        then: Callable[[Verdicts], None],
    ) -> None:
        """Ask whether the partitions are part of the producer's transaction, or add them to it; `then` hears
        of each of them, now or later. NOT_COORDINATOR when the transaction is not this node's.
        """
        self.shell.submit(
            self.partition_of(transactional_id),
            _Decision(places, then),
            lambda machine, token, now_ms: machine.add_partitions(
                transactional_id,
                producer_id,
                producer_epoch,
                places,
                verify_only,
                transaction_version,
                token,
                now_ms,
            ),
        )

    def decide_anywhere(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        places: list[TopicPartition],
        *,
        verify_only: bool,
        then: Callable[[Verdicts], None],
    ) -> None:
        """The same for leaders of partitions: it is asked of the broker that coordinates the transaction."""
        part = self._server.image.partition(self.topic, self.partition_of(transactional_id))
        if part is None or part.leader < 0:
            then(dict.fromkeys(places, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        elif part.leader == self._server.node_id:
            self.decide(
                transactional_id,
                producer_id,
                producer_epoch,
                places,
                verify_only=verify_only,
                transaction_version=0 if verify_only else 2,
                then=then,
            )
        else:
            self._elsewhere.decide(
                part.leader, transactional_id, producer_id, producer_epoch, places, verify_only, then
            )

    @property
    def _elsewhere(self) -> "CoordinatorQuestions":
        """The way to the coordinators of other brokers."""
        if self._questions is None:
            from mainstem.broker.coordination.coordinator_questions import (  # only a cluster needs it
                CoordinatorQuestions,
            )

            self._questions = CoordinatorQuestions(self._server, self)
        return self._questions

    def add_partitions(
        self,
        ctx: RequestContext,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        places: list[TopicPartition],
        verify_only: bool,
        then: Callable[[ErrorCode], None],
    ) -> None:
        """The same for TxnOffsetCommit: one verdict on all, in the errors that its clients know."""

        def decided(verdicts: Verdicts) -> None:
            error = next((verdict for verdict in verdicts.values() if verdict), ErrorCode.NONE)
            then(as_known(error, TXN_OFFSET_COMMIT, ctx.version))

        self.decide_anywhere(
            transactional_id,
            producer_id,
            producer_epoch,
            places,
            verify_only=verify_only,
            then=decided,
        )

    def counts(self) -> Counts:
        """How many transactions there are and were, since when the oldest has been open."""
        counts = [machine.counts() for machine in self.shell.machines()]
        started = [each.oldest_started_ms for each in counts if each.oldest_started_ms is not None]
        return Counts(
            sum(each.open for each in counts),
            min(started, default=None),
            sum(each.committed for each in counts),
            sum(each.aborted for each in counts),
        )

    # ---- for the node

    def metadata_changed(self) -> None:
        super().metadata_changed()
        self._markers.metadata_changed()
        if self._questions is not None:
            self._questions.metadata_changed()

    def close(self) -> None:
        self._markers.close()
        if self._questions is not None:
            self._questions.close()
        for task in self._tasks:
            task.cancel()
        super().close()

    def abort_with_fresh_id(self, transactional_id: str) -> None:
        """A transaction timed out whose producer needs another producer id. It is asked for again while the
        transaction is there.
        """

        def abort(producer_id: int) -> None:
            self.shell.submit(
                self.partition_of(transactional_id),
                NOBODY,
                lambda machine, _, now_ms: machine.abort_timed_out(transactional_id, producer_id, now_ms),
            )

        self.number(abort, NOBODY.fail)

    def number(self, then: Callable[[int], None], fail: Callable[[ErrorCode], None]) -> None:
        """Get a producer id that was never issued before."""

        async def fetch() -> None:
            try:
                producer_id = await self._producer_ids.next()
            except KafkaError as error:
                fail(error.code)
            else:
                then(producer_id)

        task = self._server.loop.create_task(fetch())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Numbered:
    """The token of an event that may ask for a producer id: it gets one, and is submitted again."""

    __slots__ = ("_coordinators", "_event", "_pending", "_transactional_id")

    def __init__(
        self,
        coordinators: TransactionCoordinators,
        transactional_id: str,
        event: NumberedEvent,
        pending: Pending,
    ) -> None:
        self._coordinators = coordinators
        self._transactional_id = transactional_id
        self._event = event
        self._pending = pending

    def submit(self, producer_id: int | None) -> None:
        coordinators = self._coordinators
        coordinators.shell.submit(
            coordinators.partition_of(self._transactional_id),
            self,
            lambda machine, token, now_ms: self._event(machine, producer_id, token, now_ms),
        )

    def reply(self, response: Any) -> None:
        if response is NEEDS_PRODUCER_ID:
            self._coordinators.number(self.submit, self.fail)
        else:
            self._pending.reply(response)

    def fail(self, error: ErrorCode) -> None:
        self._pending.fail(error)


class _Decision:
    """The token of whoever wants to know about partitions of a transaction."""

    __slots__ = ("_places", "_then")

    def __init__(self, places: list[TopicPartition], then: Callable[[Verdicts], None]) -> None:
        self._places = places
        self._then = then

    def reply(self, verdicts: Verdicts) -> None:
        self._then(verdicts)

    def fail(self, error: ErrorCode) -> None:
        self._then(dict.fromkeys(self._places, error))
