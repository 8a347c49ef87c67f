"""`mainstem config`: get, set, unset and describe settings of topics, groups and brokers.

Everything goes through Kafka's config APIs, so the same commands work on any Kafka cluster; what a setting
means and takes is known from its one declaration.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from mainstem.cli.client import DEFAULT_BOOTSTRAP, Bootstrap, check_reachable
from mainstem.cli.config.requests import (
    ConfigRequests,
    Described,
    Scope,
    broker_scope,
    group_scope,
    topic_scope,
)
from mainstem.cli.config.show import (
    declared,
    declared_json,
    described_json,
    known_names,
    settings_help,
    show_declared,
    show_described,
    value_text,
)
from mainstem.cli.errors import CommandError
from mainstem.cli.pairs import parse_pairs
from mainstem.cli.rendering import examples, print_json
from mainstem.cli.streams import say
from mainstem.config.tables import TOPIC_SETTINGS
from mainstem.nearest import suggestion

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
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON for a script.")]
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
def get(
    names: Names,
    topic: Topic = None,
    group: Group = None,
    broker: BrokerId = None,
    all_brokers: AllBrokers = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Print the values in force; of the broker that answers, unless told otherwise."""
    check_reachable(bootstrap)
    with ConfigRequests(bootstrap) as requests:
        scope = _scope(topic, group, broker, all_brokers) or broker_scope(requests.any_broker())
        found = _named(requests, scope, names)
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
def set_(
    pairs: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="What to set.")],
    topic: Topic = None,
    group: Group = None,
    broker: BrokerId = None,
    all_brokers: AllBrokers = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Set values, all of them or none; they are in force when the command ends, and survive restarts."""
    changes: dict[str, str | None] = dict(parse_pairs(pairs, "the setting"))
    scope = _required(_scope(topic, group, broker, all_brokers))
    check_reachable(bootstrap)
    with ConfigRequests(bootstrap) as requests:
        requests.alter(scope, changes)
        for name, value in changes.items():
            print(f"set {name}={value} for {scope.words}")
        for setting in requests.describe(scope, changes):
            if not setting.acted_on:
                say(f"warning: {setting.name} is kept, but Mainstem does not act on it")


@app.command(
    "unset",
    epilog=examples(
        "mainstem config unset retention.ms --topic orders",
        "mainstem config unset log.retention.ms --all-brokers",
    ),
)
def unset(
    names: Names,
    topic: Topic = None,
    group: Group = None,
    broker: BrokerId = None,
    all_brokers: AllBrokers = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Take values back that were set: the next place that gives one counts again."""
    scope = _required(_scope(topic, group, broker, all_brokers))
    check_reachable(bootstrap)
    with ConfigRequests(bootstrap) as requests:
        if not all_brokers:
            _named(requests, scope, names)
        requests.alter(scope, dict.fromkeys(names))
        left = {setting.name: setting for setting in requests.describe(scope, names)}
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
def describe(
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
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Explain settings; of a topic, group or broker, with their values and where these come from."""
    scope = _scope(topic, group, broker, all_brokers)
    if scope is None:
        _describe_declared(names or [], ignored, as_json)
        return
    check_reachable(bootstrap)
    with ConfigRequests(bootstrap) as requests:
        found = _named(requests, scope, names) if names else requests.describe(scope)
    if not (names or show_all or ignored):
        found = [setting for setting in found if setting.source != "default"]
    if ignored:
        found = [setting for setting in found if not setting.acted_on]
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


def _scope(topic: str | None, group: str | None, broker: int | None, all_brokers: bool) -> Scope | None:
    """The one that was asked for; None when none was."""
    found = [
        scope
        for scope in (
            topic_scope(topic) if topic is not None else None,
            group_scope(group) if group is not None else None,
            broker_scope(broker) if broker is not None else None,
            broker_scope(None) if all_brokers else None,
        )
        if scope is not None
    ]
    if len(found) > 1:
        raise CommandError(
            "settings of one thing at a time", "give one of --topic, --group, --broker and --all-brokers", 2
        )
    return found[0] if found else None


def _required(scope: Scope | None) -> Scope:
    if scope is None:
        raise CommandError("whose setting?", "give --topic, --group, --broker or --all-brokers", 2)
    return scope


def _named(requests: ConfigRequests, scope: Scope, names: list[str]) -> list[Described]:
    """These settings in the order in which they were asked for; CommandError for an unknown name."""
    found = {setting.name: setting for setting in requests.describe(scope, names)}
    missing = [name for name in names if name not in found]
    if missing:
        if scope == broker_scope(None):
            raise CommandError(
                f"{missing[0]} was not set for all brokers", "--broker ID shows what is in force"
            )
        every = [setting.name for setting in requests.describe(scope)]
        raise _unknown(missing[0], every, f"{scope.words} has no such setting")
    return [found[name] for name in names]


def _unknown(name: str, known: Iterable[str], problem: str) -> CommandError:
    hint = suggestion(name, known, "`mainstem config describe` lists every setting")
    return CommandError(f"{name}: {problem}", hint)
