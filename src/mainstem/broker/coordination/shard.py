"""One partition's state machine in one leader epoch, with what it has decided and not appended yet."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from mainstem.broker.coordination.pending_replies import PendingReplies, Replies
from mainstem.broker.logs.partition import Partition
from mainstem.coordinator.effects import CoordinatorRecord
from mainstem.coordinator.machine import Machine
from mainstem.protocol.errors import ErrorCode
from mainstem.records.batch import HEADER_SIZE

M = TypeVar("M", bound=Machine)


class Shard(Generic[M]):
    """It is not the coordinator any more when the partition is at another epoch."""

    __slots__ = (
        "batch_bytes",
        "end_offset",
        "flush_scheduled",
        "leader_epoch",
        "loading",
        "machine",
        "partition",
        "pending",
        "records",
        "replies",
        "timer",
        "timer_ms",
        "undo",
    )

    def __init__(
        self,
        partition: Partition,
        machine: M,
        loop: asyncio.AbstractEventLoop,
        timeout_ms: Callable[[], int] | None,
        lost: Callable[["Shard[M]", ErrorCode], None],
    ) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.machine = machine
        self.pending = PendingReplies(partition, loop, timeout_ms, partial(lost, self))
        self.loading: asyncio.Task[None] | None = None
        # Replies wait until the high watermark has come this far.
        self.end_offset = 0
        self.records: list[CoordinatorRecord] = []
        self.batch_bytes = HEADER_SIZE
        self.replies: Replies = []
        self.undo: list[Callable[[], object]] = []
        self.flush_scheduled = False
        self.timer: asyncio.TimerHandle | None = None
        self.timer_ms = 0

    def check_may_append(self) -> None:
        """KafkaError when this epoch is over, or what is appended now could not be committed."""
        self.partition.check_leader(self.leader_epoch)
        self.partition.check_enough_replicas()

    def deliver(self) -> None:
        """Let the replies go when what was appended is committed."""
        replies, self.replies = self.replies, []
        self.pending.deliver(replies, self.end_offset)
