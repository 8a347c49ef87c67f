"""The roles of a broker in a partition other than leading it, which is `LeaderState`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Follower:
    """Another broker leads the partition; -1 when none does."""

    leader_id: int


@dataclass(frozen=True, slots=True)
class Offline:
    """The partition's log cannot be used, whoever leads it."""

    leader_id: int
    reason: str
