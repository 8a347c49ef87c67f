"""The roles of a broker in a partition other than leading it, which is `LeaderState`."""

from msgspec import Struct


class Follower(Struct, frozen=True):
    """Another broker leads the partition; -1 when none does."""

    leader_id: int


class Offline(Struct, frozen=True):
    """The partition's log cannot be used, whoever leads it."""

    leader_id: int
    reason: str
