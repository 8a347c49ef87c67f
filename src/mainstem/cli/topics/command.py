"""`mainstem topics`: list, create, describe, delete and alter topics.

Every change goes through Kafka's admin APIs, so the same commands work on any Kafka cluster.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from mainstem.cli.clusters.advice import advise
from mainstem.cli.clusters.existing import existing_topic, existing_topics, no_such_topic
from mainstem.cli.clusters.target import Target, takes_target
from mainstem.cli.command_name import typeable
from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import examples, print_json, print_table
from mainstem.cli.streams import say
from mainstem.cli.topics.deletion import confirm_deletion
from mainstem.cli.typed.numbers import INT16_MAX, INT32_MAX
from mainstem.cli.typed.options import Json
from mainstem.cli.typed.pairs import parse_pairs
from mainstem.nearest import suggestion
from mainstem.protocol.errors import ErrorCode
from mainstem.wire import Cluster, CreatedTopic, KafkaRefusal, NewTopic, TopicMetadata, topic_resource

app = typer.Typer(
    help="List, create, describe, delete and alter topics.", no_args_is_help=True, rich_markup_mode="rich"
)

Name = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]
Names = Annotated[list[str], typer.Argument(metavar="TOPIC...", help="One or more topics.")]
Configs = Annotated[
    list[str], typer.Option("--config", "-c", metavar="KEY=VALUE", help="A topic setting. May be repeated.")
]
Partitions = Annotated[
    int | None,
    typer.Option(
        "--partitions",
        "-p",
        metavar="N",
        min=1,
        max=INT32_MAX,
        help="How many; the broker's default otherwise.",
    ),
]
ReplicationFactor = Annotated[
    int | None,
    typer.Option(
        "--replication-factor",
        "-r",
        metavar="N",
        min=1,
        max=INT16_MAX,
        help="Copies; the broker's default otherwise.",
    ),
]


def _only(flag: str, which: str) -> Any:
    return typer.Option(flag, metavar="", help=f"Only the partitions {which}.")


@app.command(
    "list",
    epilog=examples("mainstem topics list", "mainstem topics list --json | jq '.[].name'"),
)
@takes_target
def list_topics(target: Target, as_json: Json = False) -> None:
    """List the topics; in a pipe, one name per line."""
    with target.connect() as cluster:
        topics = cluster.metadata()
    rows = []
    for name, topic in sorted(topics.items()):
        copies = max((len(part.replicas) for part in topic.partitions.values()), default=0)
        rows.append((name, len(topic.partitions), copies))
    if as_json:
        print_json(
            [
                {"name": name, "partitions": count, "replication_factor": copies}
                for name, count, copies in rows
            ]
        )
    elif sys.stdout.isatty() and rows:
        print_table(("topic", "partitions", "replicas"), rows)
    elif rows:
        print("\n".join(name for name, _, _ in rows))
    else:
        say(typeable("no topics yet; create one with `mainstem topics create NAME`"))


@app.command(
    "create",
    epilog=examples(
        "mainstem topics create orders --partitions 6",
        "mainstem topics create audit --config retention.ms=604800000",
    ),
)
@takes_target
def create(
    target: Target,
    names: Names,
    partitions: Partitions = None,
    replication_factor: ReplicationFactor = None,
    config: Configs = [],  # noqa: B006 - typer reads the default, nothing changes it
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", metavar="", help="Succeed when it is there already.")
    ] = False,
) -> None:
    """Create one or more topics."""
    settings = dict(parse_pairs(config, "--config"))
    wanted = [NewTopic(name, partitions or -1, replication_factor or -1, settings) for name in names]
    with target.connect() as cluster:
        answers = cluster.create_topics(wanted)
    tolerated = frozenset({ErrorCode.TOPIC_ALREADY_EXISTS} if if_not_exists else ())
    _finish(answers, "created", tolerated)


@app.command(
    "describe",
    epilog=examples(
        "mainstem topics describe orders",
        "mainstem topics describe --json orders audit",
        "mainstem topics describe --under-replicated-partitions",
    ),
)
@takes_target
def describe(
    target: Target,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC...]", help="Which topics; all by default.")
    ] = None,
    all_configs: Annotated[
        bool, typer.Option("--all-configs", metavar="", help="Show settings left at their default too.")
    ] = False,
    under_replicated: Annotated[
        bool, _only("--under-replicated-partitions", "that lack a copy in sync")
    ] = False,
    under_min_isr: Annotated[
        bool, _only("--under-min-isr-partitions", "with fewer copies in sync than min.insync.replicas")
    ] = False,
    at_min_isr: Annotated[
        bool, _only("--at-min-isr-partitions", "with just as many as min.insync.replicas")
    ] = False,
    unavailable: Annotated[bool, _only("--unavailable-partitions", "without a leader")] = False,
    as_json: Json = False,
) -> None:
    """Show partitions, offsets, sizes, settings, and how far retention and compaction are."""
    from mainstem.cli.topics import description, unwell  # not for `topics list`, which is asked the most

    kinds = unwell.Kinds(under_replicated, under_min_isr, at_min_isr, unavailable)
    with target.connect() as cluster:
        topics = existing_topics(cluster, names) if names else [*cluster.metadata().values()]
        if any(kinds):
            unwell.show(cluster, topics, kinds, as_json=as_json)
            return
        found = description.collect(cluster, topics, all_configs=all_configs)
    if as_json:
        print_json([description.as_json(topic) for topic in found])
        return
    for topic in found:
        description.show(topic)


@app.command(
    "delete",
    epilog=examples("mainstem topics delete orders", "mainstem topics delete old-1 old-2 --yes"),
)
@takes_target
def delete(
    target: Target,
    names: Names,
    yes: Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do not ask on a terminal.")] = False,
    internal: Annotated[
        bool,
        typer.Option("--internal", metavar="", help="Topics that the brokers need, too."),
    ] = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", metavar="", help="Succeed when it is not there.")
    ] = False,
) -> None:
    """Delete topics and all that is in them."""
    with target.connect() as cluster:
        existing = cluster.metadata()
        for name in names:
            if name not in existing and not if_exists:
                raise no_such_topic(name, existing)
        topics = [existing[name] for name in names if name in existing]
        confirm_deletion(topics, yes=yes, internal=internal)
        answers = cluster.delete_topics(topic.name for topic in topics) if topics else {}
    _finish(answers, "deleted", frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} if if_exists else ()))


@app.command(
    "alter",
    epilog=examples(
        "mainstem topics alter orders --partitions 12",
        "mainstem topics alter orders --config retention.ms=3600000 --delete-config segment.bytes",
    ),
)
@takes_target
def alter(
    target: Target,
    name: Name,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", "-p", metavar="N", max=INT32_MAX, help="The new number; it can only grow."
        ),
    ] = None,
    config: Configs = [],  # noqa: B006 - typer reads the default, nothing changes it
    delete_config: Annotated[
        list[str],
        typer.Option("--delete-config", metavar="KEY", help="Back to the default. May be repeated."),
    ] = [],  # noqa: B006 - typer reads the default, nothing changes it
) -> None:
    """Add partitions to a topic or change its settings."""
    settings = dict(parse_pairs(config, "--config"))
    if partitions is None and not settings and not delete_config:
        raise CommandError("nothing to alter", "give --partitions, --config or --delete-config", 2)
    with target.connect() as cluster:
        topic = existing_topic(cluster, name)
        if partitions is not None:
            _grow(cluster, topic, partitions)
        if settings or delete_config:
            _alter_configs(cluster, topic, settings, delete_config)


def _grow(cluster: Cluster, topic: TopicMetadata, partitions: int) -> None:
    from mainstem.cli.topics.keyed import has_keys

    name, current = topic.name, len(topic.partitions)
    if partitions <= current:
        raise CommandError(
            f"{name} has {current} partitions already: their number can only grow",
            f"give --partitions {current + 1} or more, or create a new topic and copy the messages",
        )
    keyed = has_keys(cluster, topic)
    _finish(
        cluster.create_partitions({name: partitions}), f"grown from {current} to {partitions} partitions:"
    )
    if keyed:
        say(f"warning: {name} holds messages with keys; new ones of a key may now go to another partition")
        say("  -> consumers that rely on the order within a key see it broken at this point")


def _alter_configs(
    cluster: Cluster, topic: TopicMetadata, settings: Mapping[str, str], removed: Iterable[str]
) -> None:
    resource = topic_resource(topic.name)
    known = {setting.name for setting in cluster.describe_configs(resource)} if removed else set()
    for key in removed:
        if key not in known:
            hint = suggestion(key, known, "docs/configuration.md lists every topic setting")
            raise CommandError(f"--delete-config {key}: there is no such topic setting", hint)
    cluster.alter_configs(resource, {**settings, **dict.fromkeys(removed)})
    done = [f"{key}={value}" for key, value in settings.items()]
    done += [f"{key} back to its default" for key in removed]
    print(f"altered {topic.name}: {', '.join(done)}")


def _finish(
    answers: Mapping[str, CreatedTopic | KafkaRefusal | None],
    done: str,
    tolerated: frozenset[ErrorCode] = frozenset(),
) -> None:
    """Say what was done, topic by topic, and fail with the first refusal at the end."""
    refusals = []
    for name, answer in answers.items():
        if not isinstance(answer, KafkaRefusal):
            print(f"{done} {name}")
        elif answer.code not in tolerated:
            refusals.append(answer)
    if refusals:
        raise advise(refusals[0])
