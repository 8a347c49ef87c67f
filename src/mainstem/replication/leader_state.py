"""What the leader of a partition knows and decides: end offsets, who is in sync, and who waits for what.

Rules:
- What is committed ends with the smallest end offset among the replicas that are in sync or were proposed to
  be: while a proposal is on its way, nobody knows which of the two sets holds. A replica that is caught up
  and may come into sync counts as well, or it would never get there under steady load; one that cannot be in
  sync holds nothing back.
- Nothing is committed while fewer replicas are in sync than `min.insync.replicas`, or than there are if that
  is less.
- A replica comes into sync when it has all that is committed *and* all that the leader had when its epoch
  began (some of that may be committed, although this leader does not know it yet). It must not be so far
  behind that it would have to leave again at once. One that was taken out of the set has to fetch before it
  counts again: its disk may have failed.
- One proposal at a time. It ends with its answer or with newer metadata, whichever comes first; after an
  answer that leaves open whether it was taken, only metadata end it.
- A replica's end offset counts only what is durable enough for it: the local one moves when an append,
  and the fsync that the topic demands, is done.
- An acks=all request is answered only when the high watermark has passed its last record. The high watermark
  itself is the partition's: it outlives the leader, and never moves back.
- Nothing here reads a clock, a file or a socket; the broker performs what follows from a change.
"""

from typing import Final, Generic, TypeVar

from msgspec import Struct

from mainstem.replication.brokers import NO_EPOCH, Brokers
from mainstem.replication.offset_waiters import OffsetWaiters
from mainstem.replication.progress import UNKNOWN_OFFSET, FollowerProgress

A = TypeVar("A")

# Lower than any end of what is committed: what this says nothing new about.
NOTHING_COMMITTED: Final = -1


class Proposal(Struct, frozen=True, eq=False):
    """Another set of replicas in sync, on its way to the controller: (broker, its epoch), the leader first
    among them if it was. It holds only on top of this partition epoch.
    """

    leader_epoch: int
    partition_epoch: int
    members: tuple[tuple[int, int], ...]
    is_expansion: bool

    @property
    def isr(self) -> tuple[int, ...]:
        return tuple(broker_id for broker_id, _ in self.members)


class LeaderState(Generic[A]):
    """The role of this broker in a partition that it leads. `A` is an acknowledgement that waits."""

    __slots__ = (
        "_brokers",
        "_counted",
        "_is_alone",
        "_is_under_min_isr",
        "_min_insync_replicas",
        "_partition_epoch",
        "ack_waiters",
        "epoch_start_offset",
        "followers",
        "isr",
        "leader_epoch",
        "leader_id",
        "local_end_offset",
        "local_waiters",
        "proposal",
        "start_waiters",
    )

    def __init__(self, leader_id: int, brokers: Brokers, end_offset: int, min_insync_replicas: int) -> None:
        self.leader_id = leader_id
        self.leader_epoch = -1
        self.local_end_offset = end_offset
        self.epoch_start_offset = end_offset
        self.isr: tuple[int, ...] = ()
        self.followers: dict[int, FollowerProgress] = {}
        self.proposal: Proposal | None = None
        self.local_waiters: OffsetWaiters[A] = OffsetWaiters()
        self.ack_waiters: OffsetWaiters[A] = OffsetWaiters()
        self.start_waiters: OffsetWaiters[A] = OffsetWaiters()  # for all replicas to start there
        self._brokers = brokers
        self._min_insync_replicas = min_insync_replicas
        self._partition_epoch = -1
        self._count()

    # ---- the metadata

    def take_metadata(
        self,
        leader_epoch: int,
        partition_epoch: int,
        replicas: tuple[int, ...],
        isr: tuple[int, ...],
        log_end_offset: int,
        now_ms: int,
    ) -> None:
        """Who has the partition, and who is in sync. What this leader heard from the controller already, or
        something older, changes nothing.
        """
        if partition_epoch < self._partition_epoch:
            return
        for gone in self.followers.keys() - set(replicas):
            del self.followers[gone]
        for replica in replicas:
            if replica != self.leader_id and replica not in self.followers:
                self.followers[replica] = FollowerProgress(replica)
        if leader_epoch != self.leader_epoch:
            self._begin_epoch(leader_epoch, isr, log_end_offset, now_ms)
        if partition_epoch > self._partition_epoch:
            self._commit(isr, partition_epoch)
        else:
            self._count()

    def _begin_epoch(self, leader_epoch: int, isr: tuple[int, ...], log_end_offset: int, now_ms: int) -> None:
        # Somebody else may have led in an epoch that is skipped, and followers have cut their logs for it.
        is_next = leader_epoch == self.leader_epoch + 1
        self.leader_epoch = leader_epoch
        self.epoch_start_offset = log_end_offset
        for follower in self.followers.values():
            if not is_next:
                follower.end_offset = UNKNOWN_OFFSET
            follower.begin_epoch(log_end_offset, now_ms, in_sync=follower.broker_id in isr)

    def take_min_insync_replicas(self, count: int) -> None:
        self._min_insync_replicas = count
        self._count()

    def _commit(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        """This set holds; whatever was proposed on top of a former one is decided."""
        for gone in set(self.isr).difference(isr):
            if (follower := self.followers.get(gone)) is not None:
                follower.leave_sync()
        self.isr = isr
        self._partition_epoch = partition_epoch
        self.proposal = None
        self._count()

    def _count(self) -> None:
        """Who must have what is to be committed, and whether anything is."""
        isr = self.isr if self.proposal is None else (*self.isr, *self.proposal.isr)
        self._counted = frozenset(isr) - {self.leader_id}
        self._is_under_min_isr = len(self.isr) < self.needed_in_sync
        self._is_alone = not self.followers and not self._is_under_min_isr

    # ---- what is committed

    @property
    def needed_in_sync(self) -> int:
        """How many replicas must be in sync for anything to be committed: not more than there are."""
        return min(self._min_insync_replicas, len(self.followers) + 1)

    @property
    def has_enough_replicas(self) -> bool:
        """Whether an acks=all append may be accepted now. It need not be asked again before the answer: while
        it is not so, the high watermark does not move, and nothing is acknowledged.
        """
        return not self._is_under_min_isr

    def local_log_advanced(self, end_offset: int, now_ms: int) -> int:
        """The local log is durable enough up to `end_offset`; returns where the committed records end."""
        assert end_offset >= self.local_end_offset
        before, self.local_end_offset = self.local_end_offset, end_offset
        if self._is_alone:
            return end_offset
        for follower in self.followers.values():
            if follower.end_offset >= before:
                follower.caught_up_ms = now_ms  # it was until now
        return self.committed_end_offset(now_ms)

    def committed_end_offset(self, now_ms: int) -> int:
        """Up to where every replica that counts has the records. One not heard of yet has none."""
        if self._is_under_min_isr:
            return NOTHING_COMMITTED
        end_offset = self.local_end_offset
        for follower in self.followers.values():
            if follower.end_offset < end_offset and (
                follower.broker_id in self._counted or self._may_join(follower, now_ms)
            ):
                end_offset = follower.end_offset
        return end_offset

    def _may_join(self, follower: FollowerProgress, now_ms: int) -> bool:
        return self._brokers.may_be_in_sync(
            follower.broker_id, follower.broker_epoch
        ) and follower.is_caught_up(self.local_end_offset, now_ms, self._brokers.lag_ms_max)

    def take_acknowledged(self, high_watermark: int) -> list[A]:
        """The acks=all and fsync waiters whose records are now committed, removed from the queues."""
        acknowledged = self.local_waiters.take_reached(self.local_end_offset)
        acknowledged += self.ack_waiters.take_reached(high_watermark)
        return acknowledged

    def take_all_waiters(self) -> list[A]:
        """Everybody who waits, removed from the queues: there is nothing to wait for any more."""
        return self.local_waiters.take_all() + self.ack_waiters.take_all() + self.start_waiters.take_all()

    def low_watermark(self, log_start_offset: int) -> int:
        """The smallest log start among the replicas whose brokers are there."""
        starts = [
            follower.log_start_offset
            for follower in self.followers.values()
            if follower.broker_id in self._brokers.epochs
        ]
        return min(log_start_offset, *starts) if starts else log_start_offset

    # ---- the followers

    def fetched(
        self, broker_id: int, broker_epoch: int, offset: int, log_start_offset: int, now_ms: int
    ) -> bool:
        """A follower asks for what comes from `offset` on, so it has everything before. False for one that
        must not be listened to: its broker has started again since it sent this.
        """
        if self._brokers.is_stale(broker_id, broker_epoch):
            return False
        self.followers[broker_id].fetched(
            offset, log_start_offset, broker_epoch, self.local_end_offset, now_ms
        )
        return True

    # ---- who is in sync

    @property
    def lacks_replicas(self) -> bool:
        """Whether a replica is not in sync."""
        return len(self.isr) <= len(self.followers)

    def propose_expansion(self, high_watermark: int, now_ms: int) -> Proposal | None:
        """Another set with every replica that has come into sync; None when there is none, or a proposal is
        on its way.
        """
        if self.proposal is not None or not self.lacks_replicas:
            return None
        needed = max(high_watermark, self.epoch_start_offset)
        joining = [
            follower.broker_id
            for follower in self.followers.values()
            if follower.end_offset >= needed
            and follower.broker_id not in self.isr
            and self._may_join(follower, now_ms)
        ]
        return self._propose((*self.isr, *joining), is_expansion=True) if joining else None

    def propose_shrinking(self, now_ms: int) -> Proposal | None:
        """Another set without the replicas that have been behind for too long."""
        if self.proposal is not None or len(self.isr) <= 1:
            return None
        remaining = tuple(
            broker_id
            for broker_id in self.isr
            if (follower := self.followers.get(broker_id)) is None
            or follower.is_caught_up(self.local_end_offset, now_ms, self._brokers.lag_ms_max)
        )
        return self._propose(remaining, is_expansion=False) if len(remaining) < len(self.isr) else None

    def _propose(self, isr: tuple[int, ...], *, is_expansion: bool) -> Proposal:
        members = tuple(
            (broker_id, NO_EPOCH if (it := self.followers.get(broker_id)) is None else it.known_epoch)
            for broker_id in isr
        )
        self.proposal = Proposal(self.leader_epoch, self._partition_epoch, members, is_expansion)
        self._count()
        return self.proposal

    def accepted(
        self, proposal: Proposal, leader_epoch: int, partition_epoch: int, isr: tuple[int, ...]
    ) -> bool:
        """The controller's answer to a proposal; False when it comes too late to say anything."""
        if (
            proposal is not self.proposal
            or leader_epoch != self.leader_epoch
            or partition_epoch < self._partition_epoch
        ):
            return False
        self._commit(isr, partition_epoch)
        return True

    def refused(self, proposal: Proposal) -> bool:
        """The controller has not taken it and never will: the set from before holds. False when too late."""
        if proposal is not self.proposal:
            return False
        self.proposal = None
        self._count()
        return True
