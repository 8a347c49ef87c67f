"""One partition of this node: its log, the node's role in it, and the waking of whoever waits for either.

The log does the I/O, the role decides; this object connects the two and keeps fsync off the event loop. The
role follows the metadata: the leader appends and answers for the partition; a follower takes what its leader
sends, and lets consumers read what it knows to be committed. A change of the role fails those who wait before
anything that they wait for can be cut off.

Long on purpose: whatever moves the high watermark or the role, and so has somebody to wake, is in this class.
"""

import asyncio
import logging
from collections.abc import Hashable, Iterable
from typing import Any, Final, Protocol

from mainstem.cluster.image import PartitionImage
from mainstem.config import LogConfig
from mainstem.logs import about
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.replication.brokers import Brokers
from mainstem.replication.follower import follower_high_watermark, offset_to_cut_to
from mainstem.replication.leader_state import LeaderState, Proposal
from mainstem.replication.roles import Follower, Offline
from mainstem.storage.errors import storage_error
from mainstem.storage.flush import FlushWork, plan_cut_sync
from mainstem.storage.follower import UnexpectedOffsetError
from mainstem.storage.incoming.validation import Prepared
from mainstem.storage.log import AppendResult, Log, Origin, ReadResult
from mainstem.storage.producers.verification import VerificationGuard

logger = logging.getLogger(__name__)

_NEVER: Final = 2**63 - 1


class AckWaiter(Protocol):
    """A request that waits for an offset of this partition."""

    def acknowledged(self, partition: "Partition", error: ErrorCode) -> None: ...


class Subscriber(Protocol):
    """A reader that wants to hear when there is something new to tell of partitions: more data, another log
    start, an error, their end. `subscription` is what it knows this one by.
    """

    def partition_moved(self, subscription: Any) -> None: ...

    def watermark_moved(self, subscription: Any) -> None:
        """There is no more data, but more is committed. Only followers hear of it, and go on hearing."""


class PartitionHost(Protocol):
    """What a partition needs of the node that it is on."""

    brokers: Brokers

    def now_ms(self) -> int: ...

    def propose(self, partition: "Partition", proposal: Proposal) -> None:
        """Tell the controller that other replicas are in sync; `isr_accepted` or `isr_refused` follows."""

    def role_changed(self, partition: "Partition") -> None:
        """Another broker is to be followed, or none, or in another epoch."""

    def await_followers(self, broker_ids: Iterable[int]) -> None:
        """These brokers are to fetch a partition that has a new leader here."""

    def sync_cut(self, partition: "Partition", work: FlushWork) -> None:
        """The log was cut, and is followed again when this work is done."""

    def followed_to_disk(self, partition: "Partition") -> None:
        """What the leader had sent last is on disk now, as the topic's settings demand."""


class Partition:
    """A partition of which this node has a replica. Before the metadata says who leads it, it follows; if its
    log cannot be used, it is offline from the start.
    """

    __slots__ = (
        "_flush_running",
        "_flush_timer",
        "_flush_wanted",
        "_host",
        "_loop",
        "bytes_out",
        "deleted",
        "followers",
        "has_enough_replicas",
        "high_watermark",
        "index",
        "leader_epoch",
        "log",
        "node_id",
        "role",
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
        loop: asyncio.AbstractEventLoop,
        host: PartitionHost,
        *,
        node_id: int,
        high_watermark: int = 0,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.node_id = node_id
        failure = log.health.failure
        self.role: LeaderState[AckWaiter] | Follower | Offline = (
            Follower(-1) if failure is None else Offline(-1, failure)
        )
        self.leader_epoch = -1
        # As it was when it was last written down; the log may have been cut since.
        self.high_watermark = min(max(high_watermark, log.log_start_offset), log.log_end_offset)
        # Whether an append that all replicas in sync must have is accepted. Always false but on the leader.
        self.has_enough_replicas = False
        self.deleted = False
        self.bytes_out = 0  # what fetches were given
        # Each hears of one move: it subscribes again when it has looked. Whoever lags costs nothing.
        # Consumers hear of what is committed, followers of what is appended.
        self.subscribers: dict[Hashable, Subscriber] = {}
        self.followers: dict[Hashable, Subscriber] = {}
        self._loop = loop
        self._host = host
        self._flush_wanted = 0
        self._flush_timer: asyncio.TimerHandle | None = None
        self._flush_running = False
        log.producers.state.forget_completed(self.high_watermark)

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
        leader = self.role
        if not isinstance(leader, LeaderState):
            raise self._refusal()
        result = self.log.append_as_leader(
            records, self.leader_epoch, now_ms, origin=origin, guard=guard, prepared=prepared
        )
        end_offset = result.last_offset + 1
        if result.flush_needed or self._flush_wanted > leader.local_end_offset:
            self._flush_after(result)
        elif end_offset > leader.local_end_offset:
            committed = leader.local_log_advanced(end_offset, now_ms)
            if committed > self.high_watermark:
                self.high_watermark = committed
                if self.subscribers:
                    self._tell_readers()
                if leader.ack_waiters.waiting or leader.local_waiters.waiting:
                    self._acknowledge(leader)
        if self.followers:
            self._tell_followers()
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
        leader = self._leading()
        result = self.log.append_marker(
            producer_id,
            producer_epoch,
            coordinator_epoch,
            commit,
            self.leader_epoch,
            now_ms,
            transaction_version=transaction_version,
        )
        if result.flush_needed or self._flush_wanted > leader.local_end_offset:
            self._flush_after(result)
        else:
            self._committed_to(leader, leader.local_log_advanced(result.last_offset + 1, now_ms))
        self._tell_followers()
        return result

    def needs_verification(
        self, producer_id: int, producer_epoch: int, base_sequence: int, *, supports_epoch_bump: bool = False
    ) -> VerificationGuard | None:
        """None when this producer's transaction is open here, so that its batch may be appended. Otherwise
        its coordinator must be asked first, and the batch appended with the guard. `supports_epoch_bump`: the
        client bumps the epoch with every transaction, so its sequences begin with 0 (Produce version 12).
        """
        return self.log.producers.needs_verification(
            producer_id, producer_epoch, base_sequence, supports_epoch_bump=supports_epoch_bump
        )

    @property
    def last_stable_offset(self) -> int:
        """Up to where readers of committed records may read."""
        return self.log.last_stable_offset(self.high_watermark)

    @property
    def is_flushing(self) -> bool:
        """Whether an fsync is under way; somebody may wait for what it makes durable."""
        return self._flush_running

    @property
    def is_flushed_by_time(self) -> bool:
        """Whether `flush_in_time` has something to do after an append."""
        return self.log.config.flush_ms != _NEVER

    def check_leader(self, epoch: int = -1) -> None:
        """Refuse a client that asks the wrong broker, or whose idea of the leader epoch differs from ours; -1
        means that it has none.
        """
        self._check_epoch(epoch)
        if not isinstance(self.role, LeaderState):
            raise self._refusal()

    def check_replica(self, epoch: int) -> None:
        """The same for whoever may ask a follower as well."""
        self._check_epoch(epoch)
        if self.deleted or isinstance(self.role, Offline):
            raise self._refusal()

    def _check_epoch(self, epoch: int) -> None:
        if epoch >= 0 and epoch != self.leader_epoch and not isinstance(self.role, Offline):
            code = (
                ErrorCode.FENCED_LEADER_EPOCH if epoch < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
            )
            raise KafkaError(code, f"{self} is at leader epoch {self.leader_epoch}, not {epoch}")

    def check_enough_replicas(self) -> None:
        """Refuse what all replicas in sync must have while too few of them are."""
        if not self.has_enough_replicas:
            leader = self._leading()
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self} has {len(leader.isr)} replicas in sync and needs {leader.needed_in_sync} "
                f"(min.insync.replicas is {self.log.config.min_insync_replicas})",
            )

    def _leading(self) -> LeaderState[AckWaiter]:
        if not isinstance(self.role, LeaderState):
            raise self._refusal()
        return self.role

    def _refusal(self) -> KafkaError:
        """Why this broker does not serve the partition."""
        if isinstance(self.role, Offline):
            return storage_error(self.role.reason)
        if self.deleted:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{self} is deleted")
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self} is led by broker {self.role.leader_id}, not this one"
        )

    # ---- the role

    def take_role(self, part: PartitionImage) -> None:
        """The metadata says who leads the partition, in which epoch, and which replicas are in sync."""
        assert part.leader_epoch >= self.leader_epoch, "leader epochs never go back"
        is_new_epoch = part.leader_epoch > self.leader_epoch
        self.leader_epoch = part.leader_epoch
        if isinstance(self.role, Offline):
            self.role = Offline(part.leader, self.role.reason)
        elif part.leader == self.node_id:
            self._lead(part, is_new_epoch)
        elif is_new_epoch or self.role != Follower(part.leader):
            self._leave(Follower(part.leader), ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def go_offline(self, reason: str) -> None:
        """The log cannot be used any more before the next start of the node."""
        self._leave(Offline(self.role.leader_id, reason), ErrorCode.KAFKA_STORAGE_ERROR)

    def _lead(self, part: PartitionImage, is_new_epoch: bool) -> None:
        """Lead from the log's end on, or go on: whoever waits for followers or an fsync then still does."""
        now_ms, end_offset = self._host.now_ms(), self.log.log_end_offset
        if is_new_epoch:
            self.log.assign_epoch(self.leader_epoch)
        former = self.role
        leader = former if isinstance(former, LeaderState) else self._new_leader(end_offset)
        leader.take_metadata(
            part.leader_epoch, part.partition_epoch, part.replicas, part.isr, end_offset, now_ms
        )
        self._count_replicas()
        self._committed_to(leader, leader.committed_end_offset(now_ms))
        if is_new_epoch:
            self.tell_subscribers()  # those of the epoch before must hear of the new one
            if leader.followers:
                self._host.await_followers(leader.followers)
        if leader is not former:
            self._host.role_changed(self)

    def _new_leader(self, end_offset: int) -> LeaderState[AckWaiter]:
        leader: LeaderState[AckWaiter] = LeaderState(
            self.node_id, self._host.brokers, end_offset, self.log.config.min_insync_replicas
        )
        self.role = leader
        return leader

    def _leave(self, role: Follower | Offline, error: ErrorCode) -> None:
        former, self.role = self.role, role
        self._count_replicas()
        if isinstance(former, LeaderState):
            for waiter in former.take_all_waiters():
                waiter.acknowledged(self, error)
        self.tell_subscribers()
        self._host.role_changed(self)

    def _count_replicas(self) -> None:
        self.has_enough_replicas = isinstance(self.role, LeaderState) and self.role.has_enough_replicas

    # ---- replicas in sync, as the leader

    def fetched_by(
        self, broker_id: int, broker_epoch: int, offset: int, log_start_offset: int, now_ms: int
    ) -> None:
        """A follower asks for what comes from `offset` on. KafkaError for one that is none."""
        leader = self._leading()
        if broker_id not in leader.followers:
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH, f"broker {broker_id} has no replica of {self} that is known"
            )
        if not leader.fetched(broker_id, broker_epoch, offset, log_start_offset, now_ms):
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {broker_id} has started again since it fetched {self} in its epoch {broker_epoch}",
            )
        if broker_id not in leader.isr:
            self._propose(leader.propose_expansion(self.high_watermark, now_ms))
        self._committed_to(leader, leader.committed_end_offset(now_ms))
        if leader.start_waiters.waiting:
            self._acknowledge_starts(leader)

    def review_replicas(self, now_ms: int) -> None:
        """Look who has been behind for too long, who can be in sync now, and what that means. As time passes,
        and when brokers come and go.
        """
        leader = self.role
        if isinstance(leader, LeaderState) and leader.followers:
            self._propose(leader.propose_shrinking(now_ms))
            self._propose(leader.propose_expansion(self.high_watermark, now_ms))
            self._committed_to(leader, leader.committed_end_offset(now_ms))
            if leader.start_waiters.waiting:
                self._acknowledge_starts(leader)

    def has_proposed(self, proposal: Proposal) -> bool:
        """Whether its answer is still waited for."""
        return isinstance(self.role, LeaderState) and self.role.proposal is proposal

    def _propose(self, proposal: Proposal | None) -> None:
        if proposal is not None:
            self._host.propose(self, proposal)

    def isr_accepted(
        self, proposal: Proposal, leader_epoch: int, partition_epoch: int, isr: tuple[int, ...]
    ) -> None:
        """These replicas are in sync now, by the controller's answer."""
        leader = self.role
        if isinstance(leader, LeaderState) and leader.accepted(proposal, leader_epoch, partition_epoch, isr):
            logger.info("%s has %s in sync", self, list(isr), extra=about(self))
            self._count_replicas()
            self.review_replicas(self._host.now_ms())

    def isr_refused(self, proposal: Proposal) -> None:
        """The controller will not have it; who is in sync is as before."""
        leader = self.role
        if isinstance(leader, LeaderState) and leader.refused(proposal):
            self._committed_to(leader, leader.committed_end_offset(self._host.now_ms()))

    # ---- following

    @property
    def fetch_position(self) -> tuple[int, int, int]:
        """Where the log ends, the epoch of its last record (-1: none is known), and where it starts."""
        log = self.log
        return log.log_end_offset, log.leader_epochs.latest_epoch, log.log_start_offset

    def begin_to_follow(self) -> None:
        """A log that does not know its epochs may differ from the leader's behind what is committed."""
        if self.log.leader_epochs.latest_epoch < 0 and self.log.log_end_offset > self.high_watermark:
            self._cut_to(self.high_watermark)

    def append_from_leader(
        self, records: memoryview | None, high_watermark: int, log_start_offset: int
    ) -> bool:
        """Take what the leader of this epoch sent, and what it says of its log. False when the records have
        to be on disk before the leader hears that they are here; `followed_to_disk` says when they are.
        """
        is_flushed = True
        if records:
            is_flushed = not self._append_batches(records)
        log = self.log
        self._follow_high_watermark(high_watermark)
        if log_start_offset > log.log_start_offset:
            log.advance_log_start_offset(min(log_start_offset, self.high_watermark), self.high_watermark)
        return is_flushed

    def _append_batches(self, records: memoryview) -> bool:
        """Whether an fsync has to be waited for."""
        log, now_ms = self.log, self._host.now_ms()
        try:
            result = log.append_as_follower(records, now_ms, self.leader_epoch)
        except UnexpectedOffsetError as error:
            if not error.base_offset < log.log_start_offset == log.log_end_offset <= error.last_offset:
                raise
            # The leader's log starts inside of this batch, which is the first one that we get.
            start_offset = log.log_start_offset
            log.truncate_fully_and_start_at(error.base_offset, now_ms)
            result = log.append_as_follower(records, now_ms, self.leader_epoch)
            log.advance_log_start_offset(min(start_offset, log.log_end_offset), log.log_end_offset)
        if result.flush_needed:
            self._flush_after(result)
        else:
            self.flush_in_time()
        return result.flush_needed

    def _follow_high_watermark(self, leaders: int) -> None:
        end_offset = follower_high_watermark(self.high_watermark, leaders, self.log.log_end_offset)
        if end_offset > self.high_watermark:
            self.high_watermark = end_offset
            self.log.producers.state.forget_completed(end_offset)
            if self.subscribers:
                self._tell_readers()

    def cut_where_it_diverges(self, leader_epoch: int, leader_end_offset: int) -> None:
        """The leader's epoch `leader_epoch` ends there, and it does not know the one of our last record."""
        self._cut_to(offset_to_cut_to(self.log, leader_epoch, leader_end_offset, self.high_watermark))

    def follow_from(self, leader_start_offset: int, leader_end_offset: int) -> None:
        """What comes next here is not in the leader's log: it lies behind its end, or before its start."""
        end_offset = self.log.log_end_offset
        if leader_end_offset < end_offset:
            self._cut_to(leader_end_offset)
        elif leader_start_offset > end_offset:
            self.log.truncate_fully_and_start_at(leader_start_offset, self._host.now_ms())
            self.high_watermark = max(self.high_watermark, leader_start_offset)
            self._was_cut()

    def _cut_to(self, offset: int) -> None:
        if offset < self.high_watermark:
            logger.warning(
                "%s is cut to %d, although it was committed up to %d", self, offset, self.high_watermark,
                extra=about(self, offset=offset),
            )  # fmt: skip
        if self.log.truncate_to(offset, self._host.now_ms()):
            self.high_watermark = min(self.high_watermark, self.log.log_end_offset)
            self._was_cut()

    def _was_cut(self) -> None:
        self._flush_wanted = min(self._flush_wanted, self.log.log_end_offset)
        self._host.sync_cut(self, plan_cut_sync(self.log))
        self.tell_subscribers()

    # ---- settings

    def update_config(self, config: LogConfig) -> None:
        """Take new settings of the log, which hold from now on."""
        if config is self.log.config:
            return
        self.log.update_config(config)
        leader = self.role
        if isinstance(leader, LeaderState):
            leader.take_min_insync_replicas(config.min_insync_replicas)
            self._count_replicas()
            self._committed_to(leader, leader.committed_end_offset(self._host.now_ms()))
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
        return last_offset < (self._leading().local_end_offset if acks == 1 else self.high_watermark)

    def add_ack_waiter(self, last_offset: int, acks: int, waiter: AckWaiter) -> None:
        leader = self._leading()
        (leader.local_waiters if acks == 1 else leader.ack_waiters).add(last_offset + 1, waiter)

    def remove_ack_waiter(self, waiter: AckWaiter) -> None:
        if isinstance(self.role, LeaderState):
            self.role.local_waiters.remove(waiter)
            self.role.ack_waiters.remove(waiter)
            self.role.start_waiters.remove(waiter)

    @property
    def low_watermark(self) -> int:
        """Where the logs of all replicas start that are there, as the leader knows it."""
        return self._leading().low_watermark(self.log.log_start_offset)

    def add_start_waiter(self, offset: int, waiter: AckWaiter) -> None:
        """Acknowledge when no replica has anything before `offset`."""
        self._leading().start_waiters.add(offset, waiter)

    def read(
        self, offset: int, max_bytes: int, min_one_message: bool, read_committed: bool = False
    ) -> ReadResult:
        """Batches from the one that holds `offset`; an empty result at the high watermark, or at the last
        stable offset when only ended transactions are wanted.
        """
        if self.deleted or isinstance(self.role, Offline):
            raise self._refusal()
        end_offset = self.high_watermark
        if read_committed:
            end_offset = self.log.last_stable_offset(end_offset)
        return self.log.read(offset, max_bytes, end_offset, min_one_message)

    def read_to_end(self, offset: int, max_bytes: int, min_one_message: bool) -> ReadResult:
        """The same for a follower, which wants what is not committed yet."""
        self._leading()
        return self.log.read(offset, max_bytes, None, min_one_message)

    def tell_subscribers(self) -> None:
        """There is something new for whoever reads this partition."""
        self._tell_readers()
        self._tell_followers()

    def _tell_readers(self) -> None:
        subscribers, self.subscribers = self.subscribers, {}
        for subscription, subscriber in subscribers.items():
            subscriber.partition_moved(subscription)

    def _tell_followers(self) -> None:
        followers, self.followers = self.followers, {}
        for subscription, follower in followers.items():
            follower.partition_moved(subscription)

    def delete(self) -> None:
        """This node has the partition no more: everybody who waits is answered now."""
        self.deleted = True
        if self._flush_timer is not None:
            self._flush_timer.cancel()
        if isinstance(self.role, Offline):
            self.tell_subscribers()
        else:
            self._leave(Follower(self.role.leader_id), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _fail_waiters(self, error: ErrorCode) -> None:
        if isinstance(self.role, LeaderState):
            for waiter in self.role.take_all_waiters():
                waiter.acknowledged(self, error)

    def _committed_to(self, leader: LeaderState[AckWaiter], end_offset: int) -> None:
        """Move the high watermark, which never goes back, and wake whoever waits for it or for an fsync."""
        if end_offset > self.high_watermark:
            assert end_offset <= self.log.log_end_offset
            self.high_watermark = end_offset
            self.log.producers.state.forget_completed(end_offset)
            if self.subscribers:
                self._tell_readers()
            for subscription, follower in self.followers.items():
                follower.watermark_moved(subscription)
        self._acknowledge(leader)

    def _acknowledge(self, leader: LeaderState[AckWaiter]) -> None:
        for waiter in leader.take_acknowledged(self.high_watermark):
            waiter.acknowledged(self, ErrorCode.NONE)

    def _acknowledge_starts(self, leader: LeaderState[AckWaiter]) -> None:
        low_watermark = leader.low_watermark(self.log.log_start_offset)
        for waiter in leader.start_waiters.take_reached(low_watermark):
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
            self._fail_waiters(code)
            return
        if self.deleted:
            return
        self.log.flush_end(work)
        # Else what was synced has been cut off since, or lies in other files.
        counts = work.truncations == self.log.truncations
        leader = self.role
        if not isinstance(leader, LeaderState):
            if self._flush_wanted > self.log.recovery_point:
                self._flush_again()
            else:
                self._host.followed_to_disk(self)
            return
        end_offset = work.target if counts else leader.local_end_offset
        if end_offset < self._flush_wanted:
            self._flush_again()  # more was appended meanwhile that demands an fsync of its own
        else:
            end_offset = self.log.log_end_offset
        committed = leader.local_log_advanced(max(end_offset, leader.local_end_offset), self._host.now_ms())
        self._committed_to(leader, committed)

    def _flush_again(self) -> None:
        try:
            self._start_flush()
        except KafkaError as offline:
            self._fail_waiters(offline.code)
