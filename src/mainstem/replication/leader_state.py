"""What the leader of a partition knows and decides: end offsets, who is in sync, and who waits for what.

Rules:
- What is committed ends with the smallest end offset among the replicas that are in sync or were proposed to
  be: while a proposal is on its way, nobody knows which of the two sets holds.
- A replica's end offset counts only what is durable enough for it: the local one moves when an append,
  and the fsync that the topic demands, is done.
- An acks=all request is answered only when the high watermark has passed its last record. The high watermark
  itself is the partition's: it outlives the leader, and never moves back.
- Nothing here reads a clock, a file or a socket; the broker performs what follows from a change.
"""

from typing import Generic, TypeVar

from mainstem.replication.offset_waiters import OffsetWaiters

A = TypeVar("A")


class LeaderState(Generic[A]):
    """The role of this broker in a partition that it leads. `A` is an acknowledgement that waits."""

    __slots__ = (
        "_followers",
        "ack_waiters",
        "isr",
        "leader_id",
        "local_end_offset",
        "local_waiters",
        "replica_end_offsets",
    )

    def __init__(self, leader_id: int, isr: tuple[int, ...], end_offset: int) -> None:
        self.leader_id = leader_id
        self.local_end_offset = end_offset
        self.replica_end_offsets: dict[int, int] = {}
        self.local_waiters: OffsetWaiters[A] = OffsetWaiters()
        self.ack_waiters: OffsetWaiters[A] = OffsetWaiters()
        self.take_isr(isr)

    def take_isr(self, isr: tuple[int, ...]) -> None:
        """The metadata says which replicas are in sync; what was proposed before is decided with it."""
        self.isr = isr
        self._count_on(isr)

    def propose_isr(self, isr: tuple[int, ...]) -> None:
        """Another set is proposed to the controller, which may have taken it before it is heard of."""
        self._count_on((*self.isr, *isr))

    def _count_on(self, maximal_isr: tuple[int, ...]) -> None:
        """These replicas must have what is to be committed."""
        self._followers = frozenset(maximal_isr) - {self.leader_id}

    def has_enough_replicas(self, min_insync_replicas: int) -> bool:
        """Whether an acks=all append may be accepted now; checked again before it is acknowledged."""
        return len(self.isr) >= min_insync_replicas

    def local_log_advanced(self, end_offset: int) -> int:
        """The local log is durable enough up to `end_offset`; returns where the committed records end."""
        assert end_offset >= self.local_end_offset
        self.local_end_offset = end_offset
        return self.committed_end_offset() if self._followers else end_offset

    def committed_end_offset(self) -> int:
        """Up to where every replica that counts has the records. One not heard of yet has none."""
        ends = [self.replica_end_offsets.get(follower, 0) for follower in self._followers]
        return min(self.local_end_offset, *ends) if ends else self.local_end_offset

    def take_acknowledged(self, high_watermark: int) -> list[A]:
        """The acks=all and fsync waiters whose records are now committed, removed from the queues."""
        acknowledged = self.local_waiters.take_reached(self.local_end_offset)
        acknowledged += self.ack_waiters.take_reached(high_watermark)
        return acknowledged

    def take_all_waiters(self) -> list[A]:
        """Everybody who waits, removed from the queues: there is nothing to wait for any more."""
        return self.local_waiters.take_all() + self.ack_waiters.take_all()
