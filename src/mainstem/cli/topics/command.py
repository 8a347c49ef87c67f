"""`mainstem topics`: list, create, describe, delete and alter topics.

Every change goes through Kafka's admin APIs, so the same commands work on any Kafka cluster.
"""

from __future__ import annotations

import sys
from concurrent.futures import Future
from typing import Annotated, Any

import typer
from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from mainstem.cli.client import (
    DEFAULT_BOOTSTRAP,
    REQUEST_TIMEOUT_S,
    Bootstrap,
    admin_client,
    cluster_metadata,
    kafka_errors,
    no_such_topic,
    topic_metadata,
)
from mainstem.cli.command_name import typeable
from mainstem.cli.errors import CommandError
from mainstem.cli.pairs import parse_pairs
from mainstem.cli.rendering import examples, print_json, print_table
from mainstem.cli.streams import say
from mainstem.cli.topics import description as topic_description
from mainstem.cli.topics.keyed import has_keys
from mainstem.nearest import suggestion

app = typer.Typer(
    help="List, create, describe, delete and alter topics.", no_args_is_help=True, rich_markup_mode="rich"
)

Json = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON for a script.")]
Name = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]
Names = Annotated[list[str], typer.Argument(metavar="TOPIC...", help="One or more topics.")]
Configs = Annotated[
    list[str], typer.Option("--config", "-c", metavar="KEY=VALUE", help="A topic setting. May be repeated.")
]
Partitions = Annotated[
    int | None,
    typer.Option("--partitions", "-p", metavar="N", min=1, help="How many; the broker's default otherwise."),
]
ReplicationFactor = Annotated[
    int | None,
    typer.Option(
        "--replication-factor", "-r", metavar="N", min=1, help="Copies; the broker's default otherwise."
    ),
]


@app.command(
    "list",
    epilog=examples("mainstem topics list", "mainstem topics list --json | jq '.[].name'"),
)
def list_topics(as_json: Json = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """List the topics; in a pipe, one name per line."""
    admin = admin_client(bootstrap)
    rows = []
    for name, topic in sorted(cluster_metadata(admin, bootstrap).topics.items()):
        replicas = max((len(partition.replicas) for partition in topic.partitions.values()), default=0)
        rows.append((name, len(topic.partitions), replicas))
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
def create(
    names: Names,
    partitions: Partitions = None,
    replication_factor: ReplicationFactor = None,
    config: Configs = [],  # noqa: B006 - typer reads the default, nothing changes it
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", metavar="", help="Succeed when it is there already.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Create one or more topics."""
    settings = dict(parse_pairs(config, "--config"))
    wanted = [NewTopic(name, partitions or -1, replication_factor or -1, config=settings) for name in names]
    admin = admin_client(bootstrap)  # a name of its own: the futures end with the client
    futures = admin.create_topics(wanted, request_timeout=REQUEST_TIMEOUT_S)
    tolerated = {KafkaError.TOPIC_ALREADY_EXISTS} if if_not_exists else set()
    _finish(futures, "create", "created", bootstrap, tolerated)


@app.command(
    "describe",
    epilog=examples("mainstem topics describe orders", "mainstem topics describe --json orders audit"),
)
def describe(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC...]", help="Which topics; all by default.")
    ] = None,
    all_configs: Annotated[
        bool, typer.Option("--all-configs", metavar="", help="Show settings left at their default too.")
    ] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Show partitions, offsets, sizes, settings, and how far retention and compaction are."""
    admin = admin_client(bootstrap)
    existing = sorted(cluster_metadata(admin, bootstrap).topics)
    for name in names or []:
        if name not in existing:
            raise no_such_topic(name, existing)
    with kafka_errors(bootstrap, "describe"):
        found = topic_description.collect(admin, bootstrap, names or existing, all_configs=all_configs)
    if as_json:
        print_json([topic_description.as_json(topic) for topic in found])
        return
    for topic in found:
        topic_description.show(topic)


@app.command(
    "delete",
    epilog=examples("mainstem topics delete orders", "mainstem topics delete old-1 old-2 --yes"),
)
def delete(
    names: Names,
    yes: Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do not ask on a terminal.")] = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", metavar="", help="Succeed when it is not there.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Delete topics and all that is in them."""
    admin = admin_client(bootstrap)
    if not if_exists:
        for name in names:
            topic_metadata(admin, name, bootstrap)
    if sys.stdin.isatty() and not yes:
        typer.confirm(f"Delete {', '.join(names)} and every message in it?", abort=True)
    futures = admin.delete_topics(names, request_timeout=REQUEST_TIMEOUT_S)
    tolerated = {KafkaError.UNKNOWN_TOPIC_OR_PART} if if_exists else set()
    _finish(futures, "delete", "deleted", bootstrap, tolerated)


@app.command(
    "alter",
    epilog=examples(
        "mainstem topics alter orders --partitions 12",
        "mainstem topics alter orders --config retention.ms=3600000 --delete-config segment.bytes",
    ),
)
def alter(
    name: Name,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", metavar="N", help="The new number; it can only grow.")
    ] = None,
    config: Configs = [],  # noqa: B006 - typer reads the default, nothing changes it
    delete_config: Annotated[
        list[str],
        typer.Option("--delete-config", metavar="KEY", help="Back to the default. May be repeated."),
    ] = [],  # noqa: B006 - typer reads the default, nothing changes it
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Add partitions to a topic or change its settings."""
    settings = dict(parse_pairs(config, "--config"))
    if partitions is None and not settings and not delete_config:
        raise CommandError("nothing to alter", "give --partitions, --config or --delete-config", 2)
    admin = admin_client(bootstrap)
    current = len(topic_metadata(admin, name, bootstrap).partitions)
    if partitions is not None:
        if partitions <= current:
            raise CommandError(
                f"{name} has {current} partitions already: their number can only grow",
                f"give --partitions {current + 1} or more, or create a new topic and copy the messages",
            )
        keyed = has_keys(bootstrap, name, current)
        futures = admin.create_partitions(
            [NewPartitions(name, partitions)], request_timeout=REQUEST_TIMEOUT_S
        )
        _finish(futures, "alter", f"grown from {current} to {partitions} partitions:", bootstrap)
        if keyed:
            say(
                f"warning: {name} holds messages with keys; new ones of a key may now go to another partition"
            )
            say("  -> consumers that rely on the order within a key see it broken at this point")
    if settings or delete_config:
        _alter_configs(admin, name, settings, delete_config, bootstrap)


def _alter_configs(
    admin: AdminClient, name: str, settings: dict[str, str], removed: list[str], bootstrap: str
) -> None:
    with kafka_errors(bootstrap, f"describe {name}"):
        known = topic_description.setting_names(admin, name) if removed else set()
    for key in removed:
        if key not in known:
            hint = suggestion(key, known, "docs/configuration.md lists every topic setting")
            raise CommandError(f"--delete-config {key}: there is no such topic setting", hint)
    changes = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in settings.items()
    ]
    changes += [ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in removed]
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=changes)
    futures = admin.incremental_alter_configs([resource], request_timeout=REQUEST_TIMEOUT_S)
    with kafka_errors(bootstrap, f"alter {name}"):
        futures[resource].result()
    done = [f"{key}={value}" for key, value in settings.items()]
    done += [f"{key} back to its default" for key in removed]
    print(f"altered {name}: {', '.join(done)}")


def _finish(
    futures: dict[str, Future[Any]], what: str, done: str, bootstrap: str, tolerated: set[int] | None = None
) -> None:
    """Wait for the answer of each topic; say what was done, and fail with the first refusal at the end."""
    refusal: CommandError | None = None
    for name, future in futures.items():
        try:
            with kafka_errors(bootstrap, f"{what} {name}"):
                error = future.exception()
                if error is None:
                    print(f"{done} {name}")
                elif not (
                    isinstance(error.args[0], KafkaError) and error.args[0].code() in (tolerated or ())
                ):
                    raise error
        except CommandError as refused:
            refusal = refusal or refused
    if refusal is not None:
        raise refusal
