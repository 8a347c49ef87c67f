"""`mainstem cluster`: how a cluster is, and what an operator does with its nodes.

Everything goes through Kafka's admin APIs, so the same commands work on any Kafka cluster.
"""

from __future__ import annotations

import json
import sys
import time
from enum import StrEnum
from typing import Annotated

import typer

from mainstem.cli.clusters.advice import advise
from mainstem.cli.clusters.existing import existing_topic, no_such_partition
from mainstem.cli.clusters.target import Target, takes_target
from mainstem.cli.errors import CommandError, report
from mainstem.cli.output.rendering import examples, print_json
from mainstem.cli.typed.options import Json
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.wire import PREFERRED, SAFE_DOWNGRADE, UNCLEAN, UNSAFE_DOWNGRADE, UPGRADE, Cluster

app = typer.Typer(
    help="See how a cluster is, and look after its nodes.", no_args_is_help=True, rich_markup_mode="rich"
)


Release = Annotated[
    str | None,
    typer.Option("--release-version", "-r", metavar="VERSION", help="All as this release has them."),
]
Features = Annotated[
    list[str], typer.Option("--feature", "-f", metavar="NAME=LEVEL", help="One of them. May be repeated.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", metavar="", help="Only ask whether it could be done.")]


class ElectionType(StrEnum):
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


@app.command(
    "status",
    epilog=examples(
        "mainstem cluster status",
        "mainstem cluster status --watch",
        "mainstem cluster status --json | jq '.under_replicated | length'",
    ),
)
@takes_target
def status(
    target: Target,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", metavar="", help="Show it again and again, until Ctrl-C.")
    ] = False,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.1, help="How often, with --watch.")
    ] = 2.0,
    as_json: Json = False,
) -> None:
    """Show nodes, quorum and partitions, and what to do about what is wrong."""
    from mainstem.cli.cluster.show import show
    from mainstem.cli.cluster.status import collect
    from mainstem.cli.cluster.status_json import as_json as status_json
    from mainstem.wire import WireError

    with target.connect() as cluster:
        if not watch:
            found = collect(cluster)
            if as_json:
                print_json(status_json(found))
            else:
                show(found)
            return
        while True:
            try:
                found = collect(cluster)
            except WireError as error:  # it may be over the next time
                report(advise(error))
            else:
                if as_json:
                    print(json.dumps(status_json(found), ensure_ascii=False))
                else:
                    if sys.stdout.isatty():
                        print("\033[H\033[2J", end="")
                    show(found)
            sys.stdout.flush()
            time.sleep(interval)


@app.command("id", epilog=examples("mainstem cluster id"))
@takes_target
def cluster_id(target: Target) -> None:
    """Print the cluster's id."""
    with target.connect() as cluster:
        print(cluster.describe_cluster().cluster_id)


@app.command(
    "elect-leaders",
    epilog=examples(
        "mainstem cluster elect-leaders --election-type preferred --all-topic-partitions",
        "mainstem cluster elect-leaders --election-type unclean --topic orders --partition 0",
    ),
)
@takes_target
def elect_leaders(
    target: Target,
    election_type: Annotated[
        ElectionType,
        typer.Option(
            "--election-type",
            help="preferred: the first replica, if it is in sync. unclean: any replica that lives, where "
            "nobody leads; records that only others had are lost.",
        ),
    ],
    topic: Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="Of this topic.")] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", metavar="N", help="Only this partition of it.")
    ] = None,
    all_partitions: Annotated[
        bool, typer.Option("--all-topic-partitions", metavar="", help="Of all topics.")
    ] = False,
) -> None:
    """Elect leaders of partitions."""
    if all_partitions == (topic is not None):
        raise CommandError("which partitions?", "give either --topic or --all-topic-partitions", 2)
    if partition is not None and topic is None:
        raise CommandError("--partition needs its topic", "give --topic", 2)
    kind = PREFERRED if election_type is ElectionType.PREFERRED else UNCLEAN
    with target.connect() as cluster:
        answers = cluster.elect_leaders(kind, None if topic is None else _chosen(cluster, topic, partition))
    refusals = []
    elected = 0
    for where, refusal in sorted(answers.items()):
        if refusal is None:
            elected += 1
            print(f"elected a leader of {where[0]}-{where[1]}")
        elif refusal.code != ErrorCode.ELECTION_NOT_NEEDED:
            refusals.append(refusal)
    if not elected and not refusals:
        print("no election was needed")
    if refusals:
        raise advise(refusals[0])


@app.command("unregister", epilog=examples("mainstem cluster unregister --id 4"))
@takes_target
def unregister(
    target: Target,
    broker_id: Annotated[int, typer.Option("--id", "-i", metavar="N", help="The broker's node id.")],
) -> None:
    """Forget a broker that will never come back; its replicas must have been moved away before."""
    with target.connect() as cluster:
        held = [
            f"{name}-{number}"
            for name, topic in cluster.metadata().items()
            for number, part in topic.partitions.items()
            if broker_id in part.replicas
        ]
        if held:
            more = f" and {len(held) - 1} more" if len(held) > 1 else ""
            raise CommandError(
                f"broker {broker_id} is still to hold copies of {held[0]}{more}",
                "move them to other brokers first, or start it again",
            )
        if any(
            node.node_id == broker_id and not node.is_fenced for node in cluster.describe_cluster().brokers
        ):
            raise CommandError(
                f"broker {broker_id} is up", "stop it first; one that died is missed after a few seconds"
            )
        cluster.unregister_broker(broker_id)
    print(f"unregistered broker {broker_id}")


@app.command(
    "reassign",
    epilog=examples(
        "mainstem cluster reassign --even-out --dry-run",
        "mainstem cluster reassign --drain 4 --wait",
        "mainstem cluster reassign --list",
    ),
)
@takes_target
def reassign(
    target: Target,
    even_out: Annotated[
        bool, typer.Option("--even-out", metavar="", help="Until all brokers hold about as many copies.")
    ] = False,
    drain: Annotated[
        int | None, typer.Option("--drain", metavar="ID", help="All copies of this broker, to others.")
    ] = None,
    show: Annotated[bool, typer.Option("--list", metavar="", help="Only show what is being moved.")] = False,
    topic: Annotated[
        list[str],
        typer.Option("--topic", metavar="TOPIC", help="Only this topic's. May be repeated."),
    ] = [],  # noqa: B006 - typer reads the default, nothing changes it
    wait: Annotated[bool, typer.Option("--wait", metavar="", help="Leave when all is moved.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Move copies of partitions to other brokers."""
    from mainstem.cli.cluster.reassignment import await_moves, move, show_moves

    if even_out + (drain is not None) + show != 1:
        raise CommandError("move what?", "give one of --even-out, --drain and --list", 2)
    with target.connect() as cluster:
        if show:
            show_moves(cluster)
            return
        move(cluster, drain, topic, dry_run=dry_run)
        if wait and not dry_run:
            await_moves(cluster)


@app.command("features", epilog=examples("mainstem cluster features"))
@takes_target
def features(target: Target) -> None:
    """Show which levels of features the brokers support, and which are finalized."""
    from mainstem.cli.cluster.features import show_features

    with target.connect() as cluster:
        show_features(cluster)


@app.command(
    "upgrade",
    epilog=examples(
        "mainstem cluster upgrade --release-version 4.3", "mainstem cluster upgrade --feature group.version=1"
    ),
)
@takes_target
def upgrade(
    target: Target,
    release_version: Release = None,
    feature: Features = [],  # noqa: B006 - typer reads the default, nothing changes it
    dry_run: DryRun = False,
) -> None:
    """Raise levels of features, once all nodes run the newer version."""
    _update(target, release_version, feature, UPGRADE, "raised to", dry_run=dry_run)


@app.command("downgrade", epilog=examples("mainstem cluster downgrade --feature group.version=0"))
@takes_target
def downgrade(
    target: Target,
    release_version: Release = None,
    feature: Features = [],  # noqa: B006 - typer reads the default, nothing changes it
    unsafe: Annotated[
        bool, typer.Option("--unsafe", metavar="", help="Also where metadata would be lost.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Lower levels of features."""
    kind = UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE
    _update(target, release_version, feature, kind, "lowered to", dry_run=dry_run)


def _update(
    target: Target, release: str | None, wanted: list[str], kind: int, done: str, *, dry_run: bool
) -> None:
    from mainstem.cli.cluster.features import finalized_levels, say_levels, wanted_levels

    levels = wanted_levels(release, wanted)
    with target.connect() as cluster:
        before = finalized_levels(cluster)
        cluster.update_features(levels, kind, validate_only=dry_run)
    say_levels(before, levels, f"can be {done}" if dry_run else done)


def _chosen(cluster: Cluster, name: str, partition: int | None) -> list[TopicPartition]:
    topic = existing_topic(cluster, name)
    if partition is None:
        return [(name, number) for number in topic.partitions]
    if partition not in topic.partitions:
        raise no_such_partition(name, partition, len(topic.partitions))
    return [(name, partition)]
