"""How far one follower is, as its leader knows it from the fetches that it sends."""

from typing import Final

from mainstem.replication.brokers import NO_EPOCH

UNKNOWN_OFFSET: Final = -1


class FollowerProgress:
    """What the last fetch of a follower said, and when it had all that the leader had."""

    __slots__ = (
        "_fetched_ms",
        "_leader_end_offset",
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        # None before its first fetch, also since it left the set in sync.
        self.broker_epoch: int | None = None
        self.end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.caught_up_ms = 0  # when it last had everything
        self._fetched_ms = 0
        self._leader_end_offset = UNKNOWN_OFFSET  # where the leader's log ended at the last fetch

    def begin_epoch(self, leader_end_offset: int, now_ms: int, *, in_sync: bool) -> None:
        """The leader begins an epoch, from which on a replica in sync has its time to catch up. Any other one
        comes into sync by its fetches alone.
        """
        self.caught_up_ms = self._fetched_ms = now_ms if in_sync else 0
        self._leader_end_offset = leader_end_offset

    def leave_sync(self) -> None:
        """It is not in sync any more, whoever has decided that: nothing that it said before makes it so."""
        self.broker_epoch = None

    def fetched(
        self, offset: int, log_start_offset: int, broker_epoch: int, leader_end_offset: int, now_ms: int
    ) -> None:
        """A fetch from this offset on says that everything before is in the follower's log.

        One that is always a little behind is caught up as of its fetch before the last when it now has what
        the leader had then.
        """
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self._leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self._fetched_ms)
        self.end_offset = offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self._leader_end_offset = max(self._leader_end_offset, leader_end_offset)
        self._fetched_ms = now_ms

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_ms_max: int) -> bool:
        """Whether it has everything, or had it not long ago."""
        return self.end_offset >= leader_end_offset or now_ms - self.caught_up_ms <= lag_ms_max

    @property
    def known_epoch(self) -> int:
        """The broker epoch for a proposal; the controller takes any for a replica not heard of yet."""
        return NO_EPOCH if self.broker_epoch is None else self.broker_epoch
