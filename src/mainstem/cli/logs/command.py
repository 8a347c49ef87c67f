"""`mainstem logs`: how much the partitions take up, by topic, partition and directory.

The same command works on any Kafka cluster.
"""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum
from typing import Annotated, Any

import typer

from mainstem.cli.clusters.existing import existing_topics
from mainstem.cli.clusters.target import Target, takes_target
from mainstem.cli.logs.directories import Directory, Replica, describe_logs
from mainstem.cli.output.rendering import Row, examples, print_json, print_table
from mainstem.cli.output.units import size_text
from mainstem.cli.streams import say
from mainstem.protocol.resources import TopicPartition
from mainstem.wire import Cluster

app = typer.Typer(help="Sizes of logs and where they lie.", no_args_is_help=True, rich_markup_mode="rich")

_PARTITION_COLUMNS = ("topic", "partition", "broker", "directory", "size", "state")
_DIRECTORY_COLUMNS = ("broker", "directory", "partitions", "size", "free", "of", "state")


class By(StrEnum):
    TOPIC = "topic"
    PARTITION = "partition"
    DIRECTORY = "directory"


@app.callback()
def _logs() -> None:
    """Sizes of logs and where they lie."""


@app.command(
    "sizes",
    epilog=examples(
        "mainstem logs sizes",
        "mainstem logs sizes orders --by partition",
        "mainstem logs sizes --by directory",
        "mainstem logs sizes --json | jq '.partitions[] | select(.is_future)'",
    ),
)
@takes_target
def sizes(
    target: Target,
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC...]", help="Which topics; all by default.")
    ] = None,
    by: Annotated[By, typer.Option("--by", help="What a line stands for.")] = By.TOPIC,
    exact: Annotated[
        bool, typer.Option("--bytes", metavar="", help="Print sizes in bytes, for a script.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print JSON for a script.")] = False,
) -> None:
    """Show how many bytes the logs have, the largest first."""
    with target.connect() as cluster:
        wanted = _partitions_of(cluster, topics) if topics else None
        directories, replicas = describe_logs(cluster, wanted)
    if as_json:
        print_json(
            {
                "directories": [directory._asdict() for directory in directories],
                "partitions": [replica._asdict() for replica in replicas],
            }
        )
        return
    show = str if exact else size_text
    if by is By.TOPIC:
        print_table(("topic", "partitions", "size", "largest partition"), _by_topic(replicas, show))
    elif by is By.PARTITION:
        print_table(_PARTITION_COLUMNS, _by_partition(replicas, show))
    else:
        print_table(_DIRECTORY_COLUMNS, _by_directory(directories, replicas, show))
    for directory in directories:
        if directory.problem is not None:
            say(f"warning: {directory.path} of broker {directory.broker} is offline ({directory.problem})")


def _partitions_of(cluster: Cluster, topics: list[str]) -> list[TopicPartition]:
    found = existing_topics(cluster, topics)
    return [(topic.name, index) for topic in found for index in topic.partitions]


def _by_topic(replicas: list[Replica], show: Any) -> list[Row]:
    found: dict[str, list[Replica]] = defaultdict(list)
    for replica in replicas:
        found[replica.topic].append(replica)
    totals = sorted(found.items(), key=lambda item: (-sum(part.size for part in item[1]), item[0]))
    return [
        (
            topic,
            len({part.key for part in parts}),
            show(sum(part.size for part in parts)),
            show(max(part.size for part in parts)),
        )
        for topic, parts in totals
    ]


def _by_partition(replicas: list[Replica], show: Any) -> list[Row]:
    largest = sorted(replicas, key=lambda part: (-part.size, part.key))
    return [
        (part.topic, part.partition, part.broker, part.directory, show(part.size), _state(part))
        for part in largest
    ]


def _state(part: Replica) -> str:
    if part.offline is not None:
        return f"offline: {part.offline}"
    if part.is_future:
        return f"on its way, {part.offset_lag} offsets behind"
    return f"{part.offset_lag} offsets behind" if part.offset_lag > 0 else "current"


def _by_directory(directories: list[Directory], replicas: list[Replica], show: Any) -> list[Row]:
    rows: list[Row] = []
    for directory in directories:
        inside = [
            part for part in replicas if (part.broker, part.directory) == (directory.broker, directory.path)
        ]
        free, total = (
            "-" if number < 0 else show(number) for number in (directory.usable_bytes, directory.total_bytes)
        )
        state = "online" if directory.problem is None else f"offline: {directory.problem}"
        size = show(sum(part.size for part in inside))
        rows.append((directory.broker, directory.path, len(inside), size, free, total, state))
    return rows
