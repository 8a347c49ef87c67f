"""One partition that this node leads: its log, its leader state, and the waking of whoever waits for either.

The log does the I/O, the leader state decides; this object connects the two and keeps fsync off the event
loop.
"""

import asyncio
import logging
from typing import Final, Protocol

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.replication.leader_state import LeaderState
from mainstem.storage.flush import FlushWork
from mainstem.storage.log import AppendResult, Log, Origin, ReadResult

logger = logging.getLogger(__name__)

_NEVER: Final = 2**63 - 1


class AckWaiter(Protocol):
    """A produce request that waits for an offset of this partition."""

    def acknowledged(self, partition: "Partition", error: ErrorCode) -> None: ...


class FetchWaiter(Protocol):
    """A fetch that waits for more data or for the end of this partition."""

    def touched(self, partition: "Partition") -> None: ...


class Partition:
    """A led partition. `read`, `append` and `leader` are the whole of its interface to the request
    handlers.
    """

    __slots__ = (
        "_flush_running",
        "_flush_timer",
        "_flush_wanted",
        "_loop",
        "deleted",
        "index",
        "leader",
        "log",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        log: Log,
        leader: LeaderState[AckWaiter, FetchWaiter],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.leader = leader
        self.deleted = False
        self._loop = loop
        self._flush_wanted = 0
        self._flush_timer: asyncio.TimerHandle | None = None
        self._flush_running = False

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"

    def append(
        self, records: memoryview | bytearray, now_ms: int, origin: Origin = Origin.CLIENT
    ) -> AppendResult:
        """Append one batch as the leader. It is committed at once unless an fsync is due first."""
        leader = self.leader
        result = self.log.append_as_leader(records, leader.leader_epoch, now_ms, origin=origin)
        end_offset = result.last_offset + 1
        if result.flush_needed or self._flush_wanted > leader.local_end_offset:
            if result.flush_needed:
                self._flush_wanted = self.log.log_end_offset
            self._start_flush()
        elif end_offset > leader.local_end_offset and leader.local_log_advanced(end_offset):
            self._high_watermark_moved()
        return result

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

    def read(self, offset: int, max_bytes: int, min_one_message: bool) -> ReadResult:
        """Committed batches from the one that holds `offset`; an empty result at the high watermark."""
        return self.log.read(offset, max_bytes, self.leader.high_watermark, min_one_message)

    def wake_fetches(self) -> None:
        """Have every parked fetch on this partition look again."""
        for waiter in list(self.leader.fetch_waiters):
            waiter.touched(self)

    def delete(self) -> None:
        """The topic is gone: everybody who waits is answered now."""
        self.deleted = True
        if self._flush_timer is not None:
            self._flush_timer.cancel()
        self.fail_waiters(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self.wake_fetches()

    def fail_waiters(self, error: ErrorCode) -> None:
        for waiter in self.leader.local_waiters.take_all() + self.leader.ack_waiters.take_all():
            waiter.acknowledged(self, error)

    def _high_watermark_moved(self) -> None:
        leader = self.leader
        if leader.fetch_waiters:
            self.wake_fetches()
        if leader.ack_waiters.waiting or leader.local_waiters.waiting:
            for waiter in leader.take_acknowledged():
                waiter.acknowledged(self, ErrorCode.NONE)

    # ---- fsync off the loop

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
        self._high_watermark_moved()
