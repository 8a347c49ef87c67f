"""Topics, partitions and brokers that a person names have to be there; if not, the nearest is offered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mainstem.cli.errors import CommandError
from mainstem.nearest import suggestion

if TYPE_CHECKING:
    from mainstem.wire import Cluster, TopicMetadata


def existing_topics(cluster: Cluster, names: Iterable[str]) -> list[TopicMetadata]:
    """These topics, which all have to be there."""
    existing = cluster.metadata()
    found = []
    for name in names:
        if name not in existing:
            raise no_such_topic(name, existing)
        found.append(existing[name])
    return found


def existing_topic(cluster: Cluster, name: str) -> TopicMetadata:
    (found,) = existing_topics(cluster, [name])
    return found


def no_such_topic(topic: str, existing: Iterable[str], otherwise: str | None = None) -> CommandError:
    """There is no such topic: offer the likely typo."""
    hint = suggestion(topic, existing, otherwise or "`mainstem topics list` shows what is there")
    return CommandError(f"there is no topic {topic!r}", hint)


def no_such_partition(topic: str, partition: int, count: int) -> CommandError:
    reach = f"it has 0 to {count - 1}" if count > 1 else "it has 0 only"
    return CommandError(f"{topic} has no partition {partition}", reach)


def no_such_broker(broker_id: int, known: Iterable[int]) -> CommandError:
    return CommandError(f"there is no broker {broker_id}", f"there are: {', '.join(map(str, sorted(known)))}")
