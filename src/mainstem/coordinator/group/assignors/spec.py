"""What an assignor is told of a group, and what it answers."""

from collections.abc import Mapping, Set
from typing import NamedTuple

# Member id -> topic id -> partitions.
Assignment = Mapping[str, Mapping[bytes, Set[int]]]


class MemberSpec(NamedTuple):
    """A member as it is now. `owned` is its target assignment so far: it keeps what balance allows."""

    rack_id: str | None
    instance_id: str | None
    subscribed_topic_ids: frozenset[bytes]
    owned: Mapping[bytes, frozenset[int]]


class TopicSpec(NamedTuple):
    """A topic that somebody is subscribed to.

    The assignors of Kafka 4.3 look at no racks, and so neither do these; the racks may be left out.
    """

    partition_count: int
    racks: tuple[frozenset[str], ...] = ()


class GroupSpec(NamedTuple):
    """The members, in the order that decides where nothing else does, and all topics they are subscribed to.

    `homogeneous` says that all members are subscribed to the same topics.
    """

    members: Mapping[str, MemberSpec]
    topics: Mapping[bytes, TopicSpec]
    homogeneous: bool
