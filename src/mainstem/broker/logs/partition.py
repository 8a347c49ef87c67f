"""One partition that this node leads: its log, its leader state, and the waking of whoever waits for either.

The log does the I/O, the leader state decides; this object connects the two and keeps fsync off the event
loop.
"""

import asyncio
import logging
from collections.abc import Hashable
from typing import Any, Final, Protocol

from mainstem.config import LogConfig
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.replication.leader_state import LeaderState
from mainstem.storage.flush import FlushWork
from mainstem.storage.incoming.validation import Prepared
from mainstem.storage.log import AppendResult, Log, Origin, ReadResult
from mainstem.storage.producers.verification import VerificationGuard

logger = logging.getLogger(__name__)

_NEVER: Final = 2**63 - 1


class AckWaiter(Protocol):
    """A produce request that waits for an offset of this partition."""

    def acknowledged(self, partition: "Partition", error: ErrorCode) -> None: ...


class Subscriber(Protocol):
    """A reader that wants to hear when there is something new to tell of partitions: more data, another log
    start, an error, their end. `subscription` is what it knows this one by.
    """

    def partition_moved(self, subscription: Any) -> None: ...


class Partition:
    """A led partition. `read`, `append` and `leader` are the whole of its interface to the request
    handlers.
    """

    __slots__ = (
        "_flush_running",
        "_flush_timer",
        "_flush_wanted",
        "_loop",
        "bytes_out",
        "deleted",
        "index",
        "leader",
        "log",
        "subscribers",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        log: Log,
        leader: LeaderState[AckWaiter],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.leader = leader
        self.deleted = False
        self.bytes_out = 0  # what fetches were given
        # Each hears of one move: it subscribes again when it has looked. Whoever lags costs nothing.
        self.subscribers: dict[Hashable, Subscriber] = {}
        self._loop = loop
        self._flush_wanted = 0
        self._flush_timer: asyncio.TimerHandle | None = None
        self._flush_running = False
        log.high_watermark_moved(leader.high_watermark)

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"

    def append(
        self,
        records: memoryview | bytearray,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        guard: VerificationGuard | None = None,
        prepared: Prepared | None = None,
    ) -> AppendResult:
        """Append one batch as the leader. It is committed at once unless an fsync is due first. A batch that
        begins a transaction here needs the guard from `needs_verification`.
        """
        leader = self.leader
        result = self.log.append_as_leader(
            records, leader.leader_epoch, now_ms, origin=origin, guard=guard, prepared=prepared
        )
        end_offset = result.last_offset + 1
        if result.flush_needed or self._flush_wanted > leader.local_end_offset:
            self._flush_after(result)
        elif end_offset > leader.local_end_offset and leader.local_log_advanced(end_offset):
            self._high_watermark_moved()
        return result

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        commit: bool,
        now_ms: int,
        transaction_version: int = 2,
    ) -> AppendResult:
        """End a producer's transaction. Readers of committed records go on when the marker is committed."""
        leader = self.leader
        result = self.log.append_marker(
            producer_id,
            producer_epoch,
            coordinator_epoch,
            commit,
            leader.leader_epoch,
            now_ms,
            transaction_version=transaction_version,
        )
        if result.flush_needed or self._flush_wanted > leader.local_end_offset:
            self._flush_after(result)
        elif leader.local_log_advanced(result.last_offset + 1):
            self.log.high_watermark_moved(leader.high_watermark)
            self._high_watermark_moved()
        return result

    def needs_verification(
        self, producer_id: int, producer_epoch: int, base_sequence: int, *, supports_epoch_bump: bool = False
    ) -> VerificationGuard | None:
        """None when this producer's transaction is open here, so that its batch may be appended. Otherwise
        its coordinator must be asked first, and the batch appended with the guard. `supports_epoch_bump`: the
        client bumps the epoch with every transaction, so its sequences begin with 0 (Produce version 12).
        """
        return self.log.needs_verification(
            producer_id, producer_epoch, base_sequence, supports_epoch_bump=supports_epoch_bump
        )

    @property
    def last_stable_offset(self) -> int:
        """Up to where readers of committed records may read."""
        return self.log.last_stable_offset(self.leader.high_watermark)

    @property
    def is_flushing(self) -> bool:
        """Whether an fsync is under way; somebody may wait for what it makes durable."""
        return self._flush_running

    @property
    def commits_at_once(self) -> bool:
        """Whether an append is committed when it returns: no other replica and no fsync to wait for."""
        config = self.log.config
        return (
            len(self.leader.isr) == 1
            and config.min_insync_replicas <= 1
            and config.flush_messages == _NEVER
            and config.flush_ms == _NEVER
        )

    def check_leader_epoch(self, epoch: int) -> None:
        """Refuse a client whose idea of the leader epoch differs from ours; -1 means that it has none."""
        if epoch < 0 or epoch == self.leader.leader_epoch:
            return
        code = (
            ErrorCode.FENCED_LEADER_EPOCH
            if epoch < self.leader.leader_epoch
            else ErrorCode.UNKNOWN_LEADER_EPOCH
        )
        raise KafkaError(code, f"{self} is at leader epoch {self.leader.leader_epoch}, not {epoch}")

    def update_config(self, config: LogConfig) -> None:
        """Take new settings of the log, which hold from now on."""
        if config is self.log.config:
            return
        self.log.update_config(config)
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        if self.log.recovery_point < self.log.log_end_offset:
            self.flush_in_time()

    def flush_in_time(self) -> None:
        """See to it that `flush.ms` from now at the latest everything appended until then is on disk."""
        flush_ms = self.log.config.flush_ms
        if flush_ms != _NEVER and self._flush_timer is None:
            self._flush_timer = self._loop.call_later(flush_ms / 1000, self._flush_because_of_time)

    def is_committed(self, last_offset: int, acks: int) -> bool:
        """Whether a produce with these `acks` may be answered for a batch that ends at `last_offset`."""
        leader = self.leader
        return last_offset < (leader.local_end_offset if acks == 1 else leader.high_watermark)

    def add_ack_waiter(self, last_offset: int, acks: int, waiter: AckWaiter) -> None:
        waiters = self.leader.local_waiters if acks == 1 else self.leader.ack_waiters
        waiters.add(last_offset + 1, waiter)

    def remove_ack_waiter(self, waiter: AckWaiter) -> None:
        self.leader.local_waiters.remove(waiter)
        self.leader.ack_waiters.remove(waiter)

    def read(
        self, offset: int, max_bytes: int, min_one_message: bool, read_committed: bool = False
    ) -> ReadResult:
        """Batches from the one that holds `offset`; an empty result at the high watermark, or at the last
        stable offset when only ended transactions are wanted.
        """
        end_offset = self.leader.high_watermark
        if read_committed:
            end_offset = self.log.last_stable_offset(end_offset)
        return self.log.read(offset, max_bytes, end_offset, min_one_message)

    def tell_subscribers(self) -> None:
        """There is something new for whoever reads this partition."""
        subscribers, self.subscribers = self.subscribers, {}
        for subscription, subscriber in subscribers.items():
            subscriber.partition_moved(subscription)

    def delete(self) -> None:
        """The topic is gone: everybody who waits is answered now."""
        self.deleted = True
        if self._flush_timer is not None:
            self._flush_timer.cancel()
        self.fail_waiters(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self.tell_subscribers()

    def fail_waiters(self, error: ErrorCode) -> None:
        for waiter in self.leader.local_waiters.take_all() + self.leader.ack_waiters.take_all():
            waiter.acknowledged(self, error)

    def _high_watermark_moved(self) -> None:
        leader = self.leader
        if self.subscribers:
            self.tell_subscribers()
        if leader.ack_waiters.waiting or leader.local_waiters.waiting:
            for waiter in leader.take_acknowledged():
                waiter.acknowledged(self, ErrorCode.NONE)

    # ---- fsync off the loop

    def _flush_after(self, result: AppendResult) -> None:
        if result.flush_needed:
            self._flush_wanted = self.log.log_end_offset
        self._start_flush()

    def _flush_because_of_time(self) -> None:
        self._flush_timer = None
        log = self.log
        if not self.deleted and log.health.failure is None and log.recovery_point < log.log_end_offset:
            self._start_flush()

    def _start_flush(self) -> None:
        if self._flush_running:
            return
        work = self.log.flush_begin()
        self._flush_running = True
        future = self._loop.run_in_executor(None, work.run)
        future.add_done_callback(lambda done: self._flushed(done, work))

    def _flushed(self, future: asyncio.Future[None], work: FlushWork) -> None:
        self._flush_running = False
        error = future.exception()
        if error is not None:
            code = error.code if isinstance(error, KafkaError) else ErrorCode.KAFKA_STORAGE_ERROR
            logger.error("cannot flush %s: %s", self, error)
            self.fail_waiters(code)
            return
        if self.deleted:
            return
        self.log.flush_end(work)
        if work.target < self._flush_wanted:
            end_offset = work.target
            try:
                self._start_flush()  # more was appended meanwhile that demands an fsync of its own
            except KafkaError as offline:
                self.fail_waiters(offline.code)
        else:
            end_offset = self.log.log_end_offset
        self.leader.local_log_advanced(max(end_offset, self.leader.local_end_offset))
        self.log.high_watermark_moved(self.leader.high_watermark)
        self._high_watermark_moved()
