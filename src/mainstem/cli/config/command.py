"""`mainstem config`: get, set, unset and describe settings of topics, groups and brokers.

Everything goes through Kafka's config APIs, so the same commands work on any Kafka cluster; what a setting
means and takes is known from its one declaration.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from mainstem.cli.clusters.existing import no_such_broker
from mainstem.cli.clusters.target import Target, takes_target
from mainstem.cli.config.show import (
    declared,
    declared_json,
    described_json,
    is_acted_on,
    known_names,
    settings_help,
    show_declared,
    show_described,
    value_text,
)
from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import examples, print_json
from mainstem.cli.streams import say
from mainstem.cli.typed.options import Json
from mainstem.cli.typed.pairs import parse_pairs
from mainstem.config.definition import ConfigSource
from mainstem.config.tables import TOPIC_SETTINGS
from mainstem.nearest import suggestion
from mainstem.wire import (
    Cluster,
    ConfigResource,
    DescribedSetting,
    broker_resource,
    group_resource,
    topic_resource,
)

app = typer.Typer(
    help="Get, set, unset and describe settings of topics, groups and brokers.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Topic = Annotated[str | None, typer.Option("--topic", "-t", metavar="TOPIC", help="Those of this topic.")]
Group = Annotated[str | None, typer.Option("--group", "-g", metavar="GROUP", help="Those of this group.")]
BrokerId = Annotated[int | None, typer.Option("--broker", metavar="ID", help="Those of this broker.")]
AllBrokers = Annotated[
    bool, typer.Option("--all-brokers", metavar="", help="Those that hold for every broker without its own.")
]
Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="One or more settings.")]
Ignored = Annotated[
    bool, typer.Option("--not-acted-on", metavar="", help="Only those that Mainstem does not act on.")
]


@app.command(
    "get",
    epilog=examples(
        "mainstem config get retention.ms --topic orders",
        "mainstem config get log.retention.ms log.segment.bytes --broker 1",
    ),
)
@takes_target
def get(
    target: Target,
    names: Names,
    topic: Topic = None,
    group: Group = None,
    broker: BrokerId = None,
    all_brokers: AllBrokers = False,
    as_json: Json = False,
) -> None:
    """Print the values in force; of the broker that answers, unless told otherwise."""
    scope = _scope(topic, group, broker, all_brokers)
    with target.connect() as cluster:
        found = _named(cluster, scope or broker_resource(min(cluster.brokers())), names)
    if as_json:
        print_json({setting.name: setting.value for setting in found})
    elif len(names) == 1:
        print(value_text(found[0]))
    else:
        print("\n".join(f"{setting.name}={value_text(setting)}" for setting in found))


@app.command(
    "set",
    epilog=examples(
        "mainstem config set retention.ms=3600000 --topic orders",
        "mainstem config set log.retention.ms=86400000 --all-brokers",
        "mainstem config set max.connections.per.ip=100 --broker 1",
    )
    + "\n\n[bold]Settings of a topic[/bold]\n"
    + settings_help(TOPIC_SETTINGS.values())
    + "\n\n[not bold]mainstem config describe lists every setting.[/not bold]",
)
@takes_target
def set_(
    target: Target,
    pairs: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="What to set.")],
    topic: Topic = None,
    group: Group = None,
    broker: BrokerId = None,
    all_brokers: AllBrokers = False,
) -> None:
    """Set values, all of them or none; they are in force when the command ends, and survive restarts."""
    changes: dict[str, str | None] = dict(parse_pairs(pairs, "the setting"))
    scope = _required(_scope(topic, group, broker, all_brokers))
    with target.connect() as cluster:
        _check_broker(cluster, scope)
        cluster.alter_configs(scope, changes)
        for name, value in changes.items():
            print(f"set {name}={value} for {scope.words}")
        for setting in cluster.describe_configs(scope, changes):
            if not is_acted_on(setting):
                say(f"warning: {setting.name} is kept, but Mainstem does not act on it")


@app.command(
    "unset",
    epilog=examples(
        "mainstem config unset retention.ms --topic orders",
        "mainstem config unset log.retention.ms --all-brokers",
    ),
)
@takes_target
def unset(
    target: Target,
    names: Names,
    topic: Topic = None,
    group: Group = None,
    broker: BrokerId = None,
    all_brokers: AllBrokers = False,
) -> None:
    """Take values back that were set: the next place that gives one counts again."""
    scope = _required(_scope(topic, group, broker, all_brokers))
    with target.connect() as cluster:
        if not all_brokers:
            _named(cluster, scope, names)
        cluster.alter_configs(scope, dict.fromkeys(names))
        left = {setting.name: setting for setting in cluster.describe_configs(scope, names)}
        for name in names:
            now = f": it is {value_text(left[name])} now" if name in left else ""
            print(f"unset {name} for {scope.words}{now}")


@app.command(
    "describe",
    epilog=examples(
        "mainstem config describe  [dim]# every setting there is[/dim]",
        "mainstem config describe --not-acted-on",
        "mainstem config describe retention.ms",
        "mainstem config describe --topic orders --all",
        "mainstem config describe log.retention.ms --broker 1",
    ),
)
@takes_target
def describe(
    target: Target,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Which settings; all by default.")
    ] = None,
    topic: Topic = None,
    group: Group = None,
    broker: BrokerId = None,
    all_brokers: AllBrokers = False,
    show_all: Annotated[
        bool, typer.Option("--all", metavar="", help="Also those that nobody has given a value.")
    ] = False,
    ignored: Ignored = False,
    as_json: Json = False,
) -> None:
    """Explain settings; of a topic, group or broker, with their values and where these come from."""
    scope = _scope(topic, group, broker, all_brokers)
    if scope is None:
        _describe_declared(names or [], ignored, as_json)
        return
    with target.connect() as cluster:
        _check_broker(cluster, scope)
        found = _named(cluster, scope, names) if names else cluster.describe_configs(scope)
    if not (names or show_all or ignored):
        found = [setting for setting in found if setting.source != ConfigSource.DEFAULT_CONFIG]
    if ignored:
        found = [setting for setting in found if not is_acted_on(setting)]
    if as_json:
        print_json([described_json(setting) for setting in found])
    elif found:
        show_described(found, scope.words, in_full=names is not None and len(names) == 1)
    else:
        say(f"{scope.words} has no settings of that kind; --all shows the defaults")


def _describe_declared(names: list[str], ignored: bool, as_json: bool) -> None:
    settings = declared(names, only_ignored=ignored)
    for name in names:
        if name not in known_names():
            raise _unknown(name, known_names(), "Kafka 4.3 has no such setting")
    if as_json:
        print_json([declared_json(setting) for setting in settings])
        return
    show_declared(settings)


def _scope(
    topic: str | None, group: str | None, broker: int | None, all_brokers: bool
) -> ConfigResource | None:
    """The one that was asked for; None when none was."""
    found = [
        scope
        for scope in (
            topic_resource(topic) if topic is not None else None,
            group_resource(group) if group is not None else None,
            broker_resource(broker) if broker is not None else None,
            broker_resource(None) if all_brokers else None,
        )
        if scope is not None
    ]
    if len(found) > 1:
        raise CommandError(
            "settings of one thing at a time", "give one of --topic, --group, --broker and --all-brokers", 2
        )
    return found[0] if found else None


def _required(scope: ConfigResource | None) -> ConfigResource:
    if scope is None:
        raise CommandError("whose setting?", "give --topic, --group, --broker or --all-brokers", 2)
    return scope


def _check_broker(cluster: Cluster, scope: ConfigResource) -> None:
    if scope.broker_id is not None and scope.broker_id not in (known := cluster.brokers()):
        raise no_such_broker(scope.broker_id, known)


def _named(cluster: Cluster, scope: ConfigResource, names: list[str]) -> list[DescribedSetting]:
    """These settings in the order in which they were asked for; CommandError for an unknown name."""
    _check_broker(cluster, scope)
    found = {setting.name: setting for setting in cluster.describe_configs(scope, names)}
    missing = [name for name in names if name not in found]
    if missing:
        if scope == broker_resource(None):
            raise CommandError(
                f"{missing[0]} was not set for all brokers", "--broker ID shows what is in force"
            )
        every = [setting.name for setting in cluster.describe_configs(scope)]
        raise _unknown(missing[0], every, f"{scope.words} has no such setting")
    return [found[name] for name in names]


def _unknown(name: str, known: Iterable[str], problem: str) -> CommandError:
    hint = suggestion(name, known, "`mainstem config describe` lists every setting")
    return CommandError(f"{name}: {problem}", hint)
