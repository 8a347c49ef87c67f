"""Runs coordinators: one state machine for each partition of an internal topic that this node leads.

It loads a machine by replaying the partition's log, to its end, and takes no event before all of that is
committed. Then it hands it events, appends the records of a whole turn of the event loop as one batch, and
lets the replies go when everything they saw is committed. A failed append undoes what was decided in that
turn. Records of a client's transaction are a batch of their own, appended at once. Groups and transactions
are machines of this shell.

A machine lives for one leader epoch. In the next one, although the leader be the same, it is loaded again:
what it had decided may not be what the log says.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from mainstem.broker.coordination.loading import LoadRetries, load
from mainstem.broker.coordination.pending_replies import client_error, fail, give
from mainstem.broker.coordination.shard import Shard
from mainstem.broker.logs.partition import Partition
from mainstem.broker.turns import LONG_TURN_MS
from mainstem.coordinator.effects import Token, Transaction
from mainstem.coordinator.machine import Machine, TransactionalMachine
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import HEADER_SIZE
from mainstem.records.compression import Codec
from mainstem.records.record import build_batch_of_pairs
from mainstem.replication.leader_state import LeaderState
from mainstem.storage.log import Origin

if TYPE_CHECKING:
    from mainstem.broker.logs.replicas import Replicas
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)

M = TypeVar("M", bound=Machine)
# What a record takes in a batch besides its key and value, at most.
_RECORD_OVERHEAD_MAX = 32
_OTHERS_LEAD = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class CoordinatorShell(Generic[M]):
    """The machines of one internal topic on this node. `reply_timeout_ms` says how long an answer waits for
    its records to be committed; without it, as long as it takes.
    """

    def __init__(
        self,
        server: "SharedServer",
        replicas: "Replicas",
        topic: str,
        new_machine: Callable[[Partition], M],
        codec: Codec,
        load_buffer_bytes: int,
        reply_timeout_ms: Callable[[], int] | None = None,
    ) -> None:
        self._server = server
        self._replicas = replicas
        self._loop = server.loop
        self._now_ms = server.clock.steady_ms
        self._turns = server.turns
        self._topic = topic
        self._new_machine = new_machine
        self._codec = codec
        self._load_buffer_bytes = load_buffer_bytes
        self._reply_timeout_ms = reply_timeout_ms
        self._shards: dict[int, Shard[M]] = {}
        self._touched: list[Shard[M]] = []  # in this turn of the event loop
        # Called when what a turn decided is written, before any other request is read.
        self.after_turn: Callable[[], None] | None = None
        self._topic_id: bytes | None = None
        self._retries = LoadRetries(self._loop, self._begin_again)

    # ---- which partitions

    @property
    def partitions(self) -> list[int]:
        """Those that this node coordinates or is about to."""
        return list(self._shards)

    def machines(self) -> list[M]:
        """Of the partitions that are loaded."""
        return [shard.machine for shard in self._shards.values() if shard.loading is None]

    @property
    def is_loading(self) -> bool:
        return any(shard.loading is not None for shard in self._shards.values())

    def machine(self, index: int) -> M | None:
        """That of a partition, for a question that changes nothing; None unless it is loaded."""
        shard = self._shard(index)
        return shard.machine if shard is not None and shard.loading is None else None

    def leader_epoch(self, index: int) -> int:
        """In which epoch a partition is coordinated here; -1 when it is not."""
        shard = self._shard(index)
        return shard.leader_epoch if shard is not None else -1

    def _shard(self, index: int) -> Shard[M] | None:
        """That of a partition, until another leader epoch begins."""
        shard = self._shards.get(index)
        if shard is None or shard.leader_epoch != shard.partition.leader_epoch:
            return None
        return shard

    @property
    def missing(self) -> list[int]:
        """The partitions that this node leads and cannot coordinate: without a log, or one that cannot be
        read.
        """
        topic = self._server.image.topics_by_name.get(self._topic)
        return [
            part.partition
            for part in (topic.partitions if topic else ())
            if part.leader == self._server.node_id and part.partition not in self._shards
        ]

    def metadata_changed(self) -> None:
        """Take over the partitions that this node leads now, let go of those that it does not, or in another
        epoch.
        """
        topic = self._server.image.topics_by_name.get(self._topic)
        if topic is None or topic.topic_id != self._topic_id:
            self._unload_all(ErrorCode.NOT_COORDINATOR)
            self._topic_id = topic.topic_id if topic else None
        for part in topic.partitions if topic else ():
            index, led = part.partition, part.leader == self._server.node_id
            shard = self._shards.get(index)
            if shard is not None and not (led and shard.leader_epoch == part.leader_epoch):
                self._unload(index, ErrorCode.NOT_COORDINATOR)
            if not led:
                self._retries.forget(index)
            elif index not in self._shards and not self._retries.is_waiting(index, part.leader_epoch):
                self._begin(index)
        for shard in list(self._shards.values()):
            if shard.loading is None:
                self._run(shard, lambda machine: machine.topics_changed(self._now_ms()))

    def _begin(self, index: int) -> None:
        partition = self._replicas.find(self._topic, index)
        if partition is None:
            return  # its log could not be made; it begins when that is done
        self._retries.cancel(index)
        if not isinstance(partition.role, LeaderState):
            self._retries.later(index, partition.leader_epoch)  # its log cannot be used
            return
        shard = self._shards[index] = Shard(
            partition, self._new_machine(partition), self._loop, self._reply_timeout_ms, self._lost
        )
        if partition.log.log_end_offset == partition.log.log_start_offset:
            self._loaded(shard)  # nothing to read: it can serve in this very turn
        else:
            shard.loading = self._loop.create_task(self._load(index, shard))

    def _begin_again(self, index: int) -> None:
        if index in self.missing:
            self._begin(index)

    async def _load(self, index: int, shard: Shard[M]) -> None:
        try:
            await load(shard.partition, shard.machine, self._load_buffer_bytes, self._turns)
        except Exception as error:
            is_expected = isinstance(error, KafkaError)
            logger.error(
                "%s cannot be loaded yet, and is not coordinated: %s",
                shard.partition, error, exc_info=None if is_expected else error,
            )  # fmt: skip
            if self._is_here(shard):
                del self._shards[index]
                self._retries.later(index, shard.leader_epoch)
            return
        shard.loading = None
        self._retries.forget(index)
        self._loaded(shard)

    def _loaded(self, shard: Shard[M]) -> None:
        shard.end_offset = shard.partition.log.log_end_offset
        self._run(shard, lambda machine: machine.loaded(self._now_ms()))

    def close(self) -> None:
        """The node stops: what was decided is written, whoever waits is not answered any more."""
        for shard in self._shards.values():
            if shard.records:
                self._flush(shard)
        self._unload_all(ErrorCode.NOT_COORDINATOR)

    def _unload_all(self, error: ErrorCode) -> None:
        self._retries.forget_all()
        for index in list(self._shards):
            self._unload(index, error)

    def _unload(self, index: int, error: ErrorCode) -> None:
        shard = self._shards.pop(index)
        if shard.loading is not None:
            shard.loading.cancel()
            return
        if shard.timer is not None:
            shard.timer.cancel()
        replies, shard.replies = shard.replies, []
        shard.records.clear()
        fail(replies, error)
        shard.pending.fail_all(error)
        shard.machine.unload(error)

    def _lost(self, shard: Shard[M], error: ErrorCode) -> None:
        """What was appended will never be committed here: the state is no longer what the log says."""
        if self._is_here(shard):
            level = logging.INFO if error in _OTHERS_LEAD else logging.ERROR
            logger.log(level, "%s is no longer coordinated here: %s", shard.partition, error.name)
            self._unload(shard.partition.index, ErrorCode.NOT_COORDINATOR)
            self._retries.later(shard.partition.index, shard.leader_epoch)

    # ---- events

    def submit(self, index: int, token: Token, event: Callable[[M, Token, int], None]) -> None:
        """Hand an event to the machine of a partition; the token is answered now or later, but always."""
        shard = self._shard(index)
        if shard is None:
            token.fail(ErrorCode.NOT_COORDINATOR)
            return
        if shard.loading is not None:
            token.fail(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            return
        try:
            event(shard.machine, token, self._now_ms())
        except Exception:
            logger.exception("an event for %s failed", shard.partition)
            if not self._forget_event(shard, token):
                token.fail(ErrorCode.UNKNOWN_SERVER_ERROR)
        self._after_event(shard)

    def try_at_once(self, index: int, event: Callable[[M, int], bool]) -> bool:
        """The same for an event that writes nothing, sets no earlier timer and tells by itself whether all is
        well. False, and nothing has happened: when it says so, or when its answer would have to wait.
        """
        shard = self._shard(index)
        if (
            shard is None
            or shard.loading is not None
            or shard.records
            or shard.partition.high_watermark < shard.end_offset
        ):
            return False
        return event(shard.machine, self._now_ms())

    def _run(self, shard: Shard[M], event: Callable[[M], object]) -> None:
        """An event that nobody waits for."""
        try:
            event(shard.machine)
        except Exception:
            logger.exception("an event for %s failed", shard.partition)
            self._forget_event(shard)
        self._after_event(shard)

    def _forget_event(self, shard: Shard[M], token: Token | None = None) -> bool:
        """Take back what an event did before it broke off; whether `token` was among those it answered."""
        effects = shard.machine.effects
        replies, effects.replies = effects.replies, []
        for undo in reversed(effects.undo):
            undo()
        effects.undo.clear()
        effects.records.clear()
        effects.transaction = None
        fail(replies, ErrorCode.UNKNOWN_SERVER_ERROR)
        return any(answered is token for answered, _ in replies)

    def _after_event(self, shard: Shard[M]) -> None:
        effects = shard.machine.effects
        if effects.records:
            self._collect(shard)
        effects.undo.clear()
        if effects.replies:
            replies, effects.replies = effects.replies, []
            if shard.records or shard.partition.high_watermark < shard.end_offset:
                shard.replies += replies
                if not shard.records:
                    shard.deliver()
            else:
                give(replies)
        deadline = shard.machine.timers.next_deadline()
        if deadline is not None and (shard.timer is None or deadline < shard.timer_ms):
            self._set_timer(shard, deadline)

    def _collect(self, shard: Shard[M]) -> None:
        """Put the records of an event to those of this turn; all of one event go into one batch."""
        effects = shard.machine.effects
        if effects.transaction is not None:
            self._append_transactional(shard, effects.transaction)
            return
        size = 0
        for key, value in effects.records:
            size += len(key) + len(value or b"") + _RECORD_OVERHEAD_MAX
        limit = shard.partition.log.config.max_message_bytes
        if shard.batch_bytes + size > limit:
            if shard.records:
                self._flush(shard)
            # It may have failed, and then this event was undone with those before it.
            if not effects.records or not self._fits(shard, size, limit):
                return
        shard.records += effects.records
        shard.batch_bytes += size
        shard.undo += effects.undo
        effects.records.clear()
        effects.undo.clear()
        if not shard.flush_scheduled:
            shard.flush_scheduled = True
            if not self._touched:
                self._loop.call_soon(self._end_of_turn)
            self._touched.append(shard)

    def _fits(self, shard: Shard[M], size: int, limit: int) -> bool:
        """Whether the records of an event fit into a batch; if not, it is undone alone. `size` is what they
        take at most.
        """
        records = shard.machine.effects.records
        if HEADER_SIZE + size > limit and len(build_batch_of_pairs(records, 0, self._codec)) > limit:
            logger.error("%d records at once are too many for %s", len(records), shard.partition)
            self._forget_event(shard)
            return False
        return True

    def _is_here(self, shard: Shard[M]) -> bool:
        return self._shards.get(shard.partition.index) is shard

    # ---- timers

    def _set_timer(self, shard: Shard[M], deadline_ms: int) -> None:
        if shard.timer is not None:
            shard.timer.cancel()
        delay_ms = max(0, deadline_ms - self._now_ms())
        shard.timer = self._loop.call_later(delay_ms / 1000, self._on_timer, shard)
        shard.timer_ms = deadline_ms

    def _on_timer(self, shard: Shard[M]) -> None:
        """Every timer is an event of its own: together their records might be too many for one batch."""
        shard.timer = None
        now_ms = self._now_ms()
        timers = shard.machine.timers
        turn = self._turns.begin(LONG_TURN_MS)  # sessions that end together are ended in several turns
        deadline = timers.next_deadline()
        while deadline is not None and deadline <= now_ms and self._is_here(shard):
            self._run(shard, lambda machine: machine.timers.run_next(now_ms))
            deadline = timers.next_deadline()
            if turn.is_over:
                break
        if deadline is not None and shard.timer is None and self._is_here(shard):
            self._set_timer(shard, deadline)

    # ---- the log

    def _end_of_turn(self) -> None:
        touched, self._touched = self._touched, []
        for shard in touched:
            shard.flush_scheduled = False
            if shard.records:
                try:
                    self._flush(shard)
                except Exception:
                    logger.exception("what was decided for %s could not be finished", shard.partition)
        if self.after_turn is not None:
            self.after_turn()

    def _flush(self, shard: Shard[M]) -> None:
        """Append what was decided since the last time, and let the replies go when it is committed."""
        records, shard.records = shard.records, []
        undo, shard.undo = shard.undo, []
        shard.batch_bytes = HEADER_SIZE
        now_ms = self._server.clock.now_ms()
        partition = shard.partition
        batch = build_batch_of_pairs(records, now_ms, self._codec)
        try:
            shard.check_may_append()
            result = partition.append(batch, now_ms, Origin.COORDINATOR)
        except KafkaError as error:
            self._append_failed(shard, undo, error)
            return
        shard.end_offset = result.last_offset + 1
        shard.deliver()

    def _append_transactional(self, shard: Shard[M], transaction: Transaction) -> None:
        """Append the records of this event, after those that were decided before it. If that fails, this
        event is undone and no other.
        """
        effects = shard.machine.effects
        if shard.records:
            self._flush(shard)
            if not effects.records:
                return  # that has failed, and this event saw it
        partition = shard.partition
        now_ms = self._server.clock.now_ms()
        batch = build_batch_of_pairs(effects.records, now_ms, self._codec, transaction[:2])
        try:
            shard.check_may_append()
            result = partition.append(batch, now_ms, Origin.COORDINATOR, guard=transaction.guard)
        except KafkaError as error:
            self._append_failed(shard, [], error)
            return
        shard.end_offset = result.last_offset + 1
        effects.records.clear()
        effects.transaction = None

    def write_marker(
        self,
        index: int,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        commit: bool,
        transaction_version: int,
    ) -> None:
        """Append the marker that ends a transaction, after what was decided before, and tell the machine.
        What it makes of that is seen when the marker is committed. KafkaError when it could not be appended.
        """
        shard = self._shard(index)
        if shard is None or shard.loading is not None:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self._topic}-{index} is not coordinated here (yet)"
            )
        partition = shard.partition
        if shard.records:
            self._flush(shard)
            self._after_event(shard)  # if it failed, what was undone may have left answers and timers
        shard.check_may_append()
        now_ms = self._server.clock.now_ms()
        result = partition.append_marker(
            producer_id, producer_epoch, coordinator_epoch, commit, now_ms, transaction_version
        )
        shard.end_offset = result.last_offset + 1
        # A machine that writes in transactions can tell what to make of their ends.
        cast(TransactionalMachine, shard.machine).transaction_ended(producer_id, commit)

    def _append_failed(self, shard: Shard[M], undo: list[Callable[[], object]], error: KafkaError) -> None:
        """Back to the state before this turn. An event that is only now being collected saw that turn: it
        goes first.
        """
        logger.error("cannot write to %s: %s", shard.partition, error)
        effects = shard.machine.effects
        replies, shard.replies = shard.replies + effects.replies, []
        undo = undo + effects.undo
        effects.replies, effects.undo = [], []
        effects.records.clear()
        effects.transaction = None
        for action in reversed(undo):
            action()
        code = client_error(error.code)
        fail(replies, code)
        if not shard.flush_scheduled:
            self._after_event(shard)  # an undo may have answered those who waited for long
