"""What an assignor is told of a group, and what it answers."""

from collections.abc import Mapping, Set
from typing import NamedTuple

# Member id -> topic id -> partitions.
Assignment = Mapping[str, Mapping[bytes, Set[int]]]


class MemberSpec(NamedTuple):
    """A member as it is now. `owned` is its target assignment so far: it keeps what balance allows."""

    instance_id: str | None
    subscribed_topic_ids: frozenset[bytes]
    owned: Mapping[bytes, frozenset[int]]


class GroupSpec(NamedTuple):
    """The members, in the order that decides where nothing else does, and how many partitions each topic has
    that somebody is subscribed to. `homogeneous` says that all are subscribed to the same ones.

    The assignors of Kafka 4.3 look at no racks, and so neither do these.
    """

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[bytes, int]
    homogeneous: bool
