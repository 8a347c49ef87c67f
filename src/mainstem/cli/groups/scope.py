"""Which partitions a `groups` command is about: `--topic orders`, `--topic orders:0,2` or `--all-topics`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import typer

from mainstem.cli.clusters.existing import no_such_partition, no_such_topic
from mainstem.cli.errors import CommandError
from mainstem.protocol.resources import TopicPartition

Topics = Annotated[
    list[str],
    typer.Option(
        "--topic",
        "-t",
        metavar="TOPIC[:0,1]",
        help="A topic, or some of its partitions. May be repeated.",
        show_default=False,
    ),
]
AllTopics = Annotated[
    bool, typer.Option("--all-topics", metavar="", help="Every partition with an offset of the group.")
]


def parse_topics(topics: Iterable[str]) -> dict[str, list[int] | None]:
    """Each topic with its partitions; None for all of them."""
    parsed: dict[str, list[int] | None] = {}
    for text in topics:
        name, colon, numbers = text.partition(":")
        parts = [number.strip() for number in numbers.split(",")]
        if not name or (colon and not all(number.isdecimal() for number in parts)):
            raise CommandError(
                f"--topic {text!r} is not TOPIC or TOPIC:PARTITION,PARTITION", "write --topic orders:0,2", 2
            )
        if not colon:
            parsed[name] = None
            continue
        known = parsed.setdefault(name, [])
        if known is not None:
            known += [int(number) for number in parts]
    return parsed


def check_scope(topics: list[str], all_topics: bool) -> None:
    """One of the two ways to say which partitions."""
    if all_topics == bool(topics):
        raise CommandError(
            "which partitions?" if not topics else "--all-topics leaves nothing for --topic to name",
            "give --topic TOPIC (may be repeated), --topic TOPIC:0,1 or --all-topics",
            2,
        )


def existing_partitions(
    wanted: Mapping[str, list[int] | None], counts: Mapping[str, int]
) -> list[TopicPartition]:
    """The partitions that are meant, in order; `counts` holds the number of partitions of each topic."""
    found: set[TopicPartition] = set()
    for topic, numbers in wanted.items():
        if topic not in counts:
            raise no_such_topic(topic, list(counts))
        for number in range(counts[topic]) if numbers is None else numbers:
            if number >= counts[topic]:
                raise no_such_partition(topic, number, counts[topic])
            found.add((topic, number))
    return sorted(found)
