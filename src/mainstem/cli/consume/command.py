"""`mainstem consume`: prints the messages of a topic, from any point or as a member of a group.

Without `--group` it assigns partitions by hand and commits nothing, so that looking at a topic never changes
anything.
"""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import typer

from mainstem.cli.clusters.existing import existing_topic, no_such_partition
from mainstem.cli.clusters.librdkafka import END_WAIT_MS, ConnectionNotice, consumer_client
from mainstem.cli.clusters.target import Target, takes_target
from mainstem.cli.consume.format import Formatter, formatter
from mainstem.cli.consume.group import GroupOptions, GroupReader, Stop
from mainstem.cli.consume.reader import Reader
from mainstem.cli.consume.start import Start, parse_start, starting_positions
from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import examples
from mainstem.cli.typed.numbers import INT64_MAX

EXAMPLES = examples(
    "mainstem consume greetings --from-beginning",
    "mainstem consume orders --from-time 10m --exit-at-end --format json",
    "mainstem consume orders --offset -5 -e --show key,partition,offset",
    "mainstem consume images --partition 0 --offset 41 -n 1 --format raw",
    "mainstem consume orders --group billing --from-beginning  [dim]# shares the topic, commits[/dim]",
)


class OutputFormat(StrEnum):
    """How a message is printed."""

    text = "text"
    json = "json"
    raw = "raw"


class Isolation(StrEnum):
    """Whether messages of open transactions are shown."""

    uncommitted = "read_uncommitted"
    committed = "read_committed"


class GroupProtocol(StrEnum):
    """By which protocol a member talks to its group's coordinator."""

    classic = "classic"
    consumer = "consumer"


Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="What to read.")]
FromBeginning = Annotated[
    bool, typer.Option("--from-beginning", "-B", metavar="", help="Start with the oldest message.")
]
Latest = Annotated[
    bool, typer.Option("--latest", metavar="", help="Start with the next message to come (the default).")
]
Offset = Annotated[
    int | None,
    typer.Option(
        "--offset",
        "-o",
        metavar="N",
        max=INT64_MAX,
        help="Start at offset N; -N: the last N of each partition.",
    ),
]
FromTime = Annotated[
    str | None,
    typer.Option(
        "--from-time", metavar="TIME", help="Start there: 10m (ago), 2026-01-31T12:00 or milliseconds."
    ),
]
Partitions = Annotated[
    list[int],
    typer.Option(
        "--partition", "-p", metavar="N", help="Only this one; may be repeated.", show_default=False
    ),
]
MaxMessages = Annotated[
    int | None, typer.Option("--max-messages", "-n", metavar="N", min=1, help="Stop after N messages.")
]
ExitAtEnd = Annotated[
    bool, typer.Option("--exit-at-end", "-e", metavar="", help="Stop at the present end of every partition.")
]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", metavar="", help="Wait for more until Ctrl-C (the default).")
]
Format = Annotated[
    OutputFormat,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="text: a value per line; json: an object per line; raw: bare bytes.",
    ),
]
Show = Annotated[
    str,
    typer.Option(
        "--show",
        metavar="FIELDS",
        help="What stands before a text value, with commas: partition, offset, timestamp, key, headers.",
    ),
]
IsolationLevel = Annotated[
    Isolation, typer.Option("--isolation", metavar="LEVEL", help="read_uncommitted or read_committed.")
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group", "-g", metavar="GROUP", help="Join this group: share the topic, commit what is printed."
    ),
]
GroupInstanceId = Annotated[
    str | None,
    typer.Option(
        "--group-instance-id", metavar="ID", help="Be a static member: a restart keeps its partitions."
    ),
]
Protocol = Annotated[
    GroupProtocol | None,
    typer.Option(
        "--group-protocol",
        metavar="PROTOCOL",
        help="classic (the default), or consumer: assignment by the broker.",
    ),
]


@takes_target
def consume(
    target: Target,
    topic: Topic,
    from_beginning: FromBeginning = False,
    latest: Latest = False,
    offset: Offset = None,
    from_time: FromTime = None,
    partition: Partitions = [],  # noqa: B006 - typer reads the default, nothing changes it
    max_messages: MaxMessages = None,
    exit_at_end: ExitAtEnd = False,
    follow: Follow = False,
    output_format: Format = OutputFormat.text,
    show: Show = "",
    isolation: IsolationLevel = Isolation.uncommitted,
    group: Group = None,
    group_instance_id: GroupInstanceId = None,
    group_protocol: Protocol = None,
) -> None:
    """Print the messages of a topic; follows it until Ctrl-C unless told to stop."""
    if exit_at_end and follow:
        raise CommandError("it cannot both stop and go on", "give one of --exit-at-end and --follow", 2)
    start = parse_start(
        beginning=from_beginning,
        latest=latest,
        offset=offset,
        from_time=from_time,
        now_ms=int(time.time() * 1000),
    )
    member = _member(group, group_instance_id, group_protocol)
    if member is not None and (partition or offset is not None or from_time is not None):
        raise CommandError(
            "a group decides itself where its members read",
            "leave --partition, --offset and --from-time out; `mainstem groups reset-offsets` moves a group",
            2,
        )
    reading = _Reading(topic, target, max_messages, not exit_at_end)
    write = formatter(output_format.value, show)
    settings: dict[str, Any] = {"enable.partition.eof": True, "isolation.level": isolation.value}
    if exit_at_end:
        settings["fetch.wait.max.ms"] = END_WAIT_MS
    if member is not None:
        _consume_in_group(reading, settings | member.settings(from_beginning=from_beginning), write)
    else:
        _consume_alone(reading, settings, write, start, partition)


class _Reading(NamedTuple):
    """What is read, and for how long."""

    topic: str
    target: Target
    limit: int | None
    follow: bool


def _member(
    group: str | None, instance_id: str | None, protocol: GroupProtocol | None
) -> GroupOptions | None:
    if group is not None:
        if not group:
            raise CommandError("a group has a name", "give --group NAME", 2)
        return GroupOptions(group, instance_id, (protocol or GroupProtocol.classic).value)
    if instance_id is not None or protocol is not None:
        raise CommandError("that is for members of a group", "give --group NAME too", 2)
    return None


def _consume_alone(
    reading: _Reading, settings: dict[str, Any], write: Formatter, start: Start, wanted: list[int]
) -> None:
    notice, target = ConnectionNotice(), reading.target
    with target.connect() as cluster:
        partitions = existing_topic(cluster, reading.topic).partitions
        for partition in wanted:
            if partition not in partitions:
                raise no_such_partition(reading.topic, partition, len(partitions))
        starts = starting_positions(cluster, reading.topic, sorted(wanted or partitions), start)
    settings |= {"auto.offset.reset": "error", "error_cb": notice}
    consumer = consumer_client(target, settings)
    try:
        reader = Reader(
            consumer, starts, target.bootstrap, notice, limit=reading.limit, follow=reading.follow
        )
        reader.run(sys.stdout.buffer, write)
    finally:
        consumer.close()


def _consume_in_group(reading: _Reading, settings: dict[str, Any], write: Formatter) -> None:
    notice = ConnectionNotice()
    stop = Stop()
    with stop.installed():
        with reading.target.connect() as cluster:
            existing_topic(cluster, reading.topic)
        consumer = consumer_client(reading.target, settings | {"error_cb": notice})
        try:
            reader = GroupReader(
                consumer,
                reading.topic,
                reading.target.bootstrap,
                notice,
                limit=reading.limit,
                follow=reading.follow,
                stop=stop,
            )
            reader.run(sys.stdout.buffer, write)
        finally:
            consumer.close()
    if stop.exit_code:
        raise typer.Exit(stop.exit_code)
