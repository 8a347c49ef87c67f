"""What a voter can be: unattached at first, a candidate while votes come in, leader once a majority agrees.

A role is a small state of its own; moving from one to another is decided in `quorum`.
"""

from collections.abc import Iterable

from msgspec import Struct


class Unattached(Struct, frozen=True):
    """Knows an epoch, but no leader in it."""

    epoch: int


class Candidate(Struct, frozen=True):
    """Wants to lead in `epoch`; `granted` are the voters who agree, itself among them."""

    epoch: int
    granted: frozenset[int]

    def has_won(self, voters: Iterable[int]) -> bool:
        members = set(voters)
        return len(self.granted & members) > len(members) // 2


class Leader:
    """Leads in `epoch`: it knows how far every voter's log is durable, and so what is committed."""

    def __init__(self, epoch: int, epoch_start_offset: int, voters: Iterable[int]) -> None:
        self.epoch = epoch
        self.epoch_start_offset = epoch_start_offset
        self.high_watermark = 0
        self._durable_ends = dict.fromkeys(voters, 0)

    def voter_is_durable_to(self, voter_id: int, end_offset: int) -> bool:
        """A voter has everything below `end_offset` on disk; returns whether the high watermark moved."""
        assert end_offset >= self._durable_ends[voter_id], f"the log of voter {voter_id} went back"
        self._durable_ends[voter_id] = end_offset
        ends = sorted(self._durable_ends.values(), reverse=True)
        agreed = ends[len(ends) // 2]
        # Records of earlier epochs are committed only together with one of this epoch.
        if agreed <= max(self.high_watermark, self.epoch_start_offset):
            return False
        self.high_watermark = agreed
        return True
