"""Whether a topic can be written to at all: it may want more replicas in sync than it has."""

from __future__ import annotations

from mainstem.cli.streams import say
from mainstem.wire import TopicMetadata


def warn_if_unwritable(topic: str, min_in_sync: str | None, copies: int) -> None:
    """A warning where nothing with acks=all can ever be written; None and -1 are what is not known."""
    if min_in_sync is not None and min_in_sync.isdecimal() and int(min_in_sync) > copies >= 0:
        have = "it has one copy" if copies == 1 else f"it has {copies} copies"
        say(f"warning: nothing can be written to {topic} with acks=all: {have}")
        say(f"  -> min.insync.replicas={min_in_sync} wants more: lower it, or give the topic more copies")


def copies_of(topic: TopicMetadata) -> int:
    """How many replicas its partitions have."""
    return max((len(part.replicas) for part in topic.partitions.values()), default=0)
