"""What the leader of a partition knows and decides: end offsets, high watermark, epoch, and who waits for
them.

Rules:
- The high watermark is the smallest end offset among the in-sync replicas, and never moves back.
- A replica's end offset counts only what is durable enough for it: the local one moves when an append,
  and the fsync that the topic demands, is done.
- An acks=all request is answered only when the high watermark has passed its last record.
- Nothing here reads a clock, a file or a socket; the broker performs what follows from a change.
"""

from typing import Generic, TypeVar

from mainstem.replication.offset_waiters import OffsetWaiters

A = TypeVar("A")


class LeaderState(Generic[A]):
    """Leader state of one partition. `A` is an acknowledgement that waits."""

    __slots__ = (
        "ack_waiters",
        "high_watermark",
        "isr",
        "leader_epoch",
        "local_end_offset",
        "local_waiters",
        "node_id",
        "replica_end_offsets",
        "replicas",
    )

    def __init__(
        self,
        node_id: int,
        leader_epoch: int,
        replicas: tuple[int, ...],
        isr: tuple[int, ...],
        end_offset: int,
    ) -> None:
        self.node_id = node_id
        self.leader_epoch = leader_epoch
        self.replicas = replicas
        self.isr = isr
        self.local_end_offset = end_offset
        self.replica_end_offsets: dict[int, int] = {}
        self.high_watermark = 0
        self.local_waiters: OffsetWaiters[A] = OffsetWaiters()
        self.ack_waiters: OffsetWaiters[A] = OffsetWaiters()
        self._advance_high_watermark()

    def has_enough_replicas(self, min_insync_replicas: int) -> bool:
        """Whether an acks=all append may be accepted now; checked again before it is acknowledged."""
        return len(self.isr) >= min_insync_replicas

    def local_log_advanced(self, end_offset: int) -> bool:
        """The local log is durable enough up to `end_offset`. True when the high watermark moved."""
        assert end_offset >= self.local_end_offset
        self.local_end_offset = end_offset
        if len(self.isr) == 1 and end_offset > self.high_watermark:
            self.high_watermark = end_offset
            return True
        return self._advance_high_watermark()

    def local_log_truncated(self, end_offset: int) -> None:
        """The local log was cut; nothing below the high watermark can be, but its known end moves back."""
        self.local_end_offset = min(self.local_end_offset, end_offset)

    def _advance_high_watermark(self) -> bool:
        smallest = self.local_end_offset
        if len(self.isr) > 1:
            for replica in self.isr:
                if replica != self.node_id:
                    smallest = min(smallest, self.replica_end_offsets.get(replica, 0))
        if smallest <= self.high_watermark:
            return False
        self.high_watermark = smallest
        return True

    def take_acknowledged(self) -> list[A]:
        """The acks=all and fsync waiters whose records are now committed, removed from the queues."""
        acknowledged = self.local_waiters.take_reached(self.local_end_offset)
        acknowledged += self.ack_waiters.take_reached(self.high_watermark)
        return acknowledged
