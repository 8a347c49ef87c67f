"""The cluster that a command talks to: the options that say which, and how to log in there.

A command that takes a `target` is given these options by `takes_target`. Administrative requests go through
the own client, `mainstem.wire`; what librdkafka needs for produce and consume is made of the same options.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainstem.cli.clusters.advice import advise
from mainstem.cli.errors import CommandError
from mainstem.cli.streams import say
from mainstem.cli.typed.pairs import parse_pairs

if TYPE_CHECKING:
    from mainstem.wire import ClientOptions, Cluster, WireError

DEFAULT_BOOTSTRAP = "localhost:9092"
# Shorter than those of programs: a person waits. What the person sets wins.
_PATIENCE = {
    "client.id": "mainstem-cli",
    "request.timeout.ms": "15000",
    "default.api.timeout.ms": "15000",
    "socket.connection.setup.timeout.ms": "3000",
}
_SAY_AFTER_S = 1.0
_SAY_EVERY_S = 5.0

_OPTIONS: dict[str, tuple[Any, Any, Any]] = {
    "bootstrap": (
        str | None,
        None,
        typer.Option(
            "--bootstrap-server",
            "-b",
            envvar="MAINSTEM_BOOTSTRAP",
            metavar="HOST:PORT",
            help="The broker to talk to; several may be given with commas.",
            show_default=DEFAULT_BOOTSTRAP,
        ),
    ),
    "command_config": (
        Path | None,
        None,
        typer.Option(
            "--command-config",
            envvar="MAINSTEM_COMMAND_CONFIG",
            metavar="FILE",
            help="Kafka's client settings in a file: security.protocol, sasl.*, ssl.* and timeouts.",
        ),
    ),
    "command_property": (
        list[str],
        [],
        typer.Option(
            "--command-property",
            metavar="NAME=VALUE",
            help="One of these settings; it wins over the file. May be repeated.",
            show_default=False,
        ),
    ),
}


def _awake_first(options: ClientOptions) -> ClientOptions:
    """With several addresses, one that hangs is not to be waited for while another answers."""
    from mainstem.cli.clusters.each_broker import ask_each

    addresses = options.bootstrap_servers
    if len(addresses) < 2:
        return options
    awake = ask_each(options, dict(enumerate(addresses)), lambda *_: True)
    order = sorted(range(len(addresses)), key=lambda number: number not in awake)
    return replace(options, bootstrap_servers=tuple(addresses[number] for number in order))


class Target:
    """A cluster as the options name it."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        # With Kafka's names.
        self.settings = {"bootstrap.servers": DEFAULT_BOOTSTRAP, **_PATIENCE, **settings}

    @property
    def bootstrap(self) -> str:
        """The addresses as they were given, for messages."""
        return self.settings["bootstrap.servers"]

    @cached_property
    def options(self) -> ClientOptions:
        """How to reach it; CommandError for a setting that cannot be honoured."""
        from mainstem.wire import WireError, from_kafka_options

        try:
            return from_kafka_options(self.settings)
        except WireError as error:
            refused = advise(error)
            if "bootstrap.servers" in refused.message:
                refused.hint = "write it as -b localhost:9092; a port is a number from 1 to 65535"
            raise refused from None

    @contextmanager
    def connect(self) -> Iterator[Cluster]:
        """A client of the cluster, which was reached; its errors become those of the command."""
        from mainstem.protocol.errors import ProtocolError
        from mainstem.wire import Cluster, WireError

        try:
            with Cluster(_awake_first(self.options), _Waiting()) as cluster:
                cluster.connect()
                yield cluster
        except WireError as error:
            raise advise(error) from None
        except ProtocolError as error:  # what was given does not fit into a request
            raise CommandError(str(error)) from None


class _Waiting:
    """Says what is waited for, after a second and then now and again."""

    def __init__(self) -> None:
        self._said_at = float("-inf")

    def __call__(self, problem: WireError, waited_s: float) -> None:
        now = time.monotonic()
        if waited_s >= _SAY_AFTER_S and now - self._said_at >= _SAY_EVERY_S:
            self._said_at = now
            say(f"mainstem: still trying: {advise(problem).message}")


def takes_target(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options about its cluster in place of its parameter `target`."""
    signature = inspect.signature(command, eval_str=True)
    parameters = [parameter for name, parameter in signature.parameters.items() if name != "target"]
    for name, (kind, default, option) in _OPTIONS.items():
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
            )
        )

    @functools.wraps(command)
    def run(
        *,
        bootstrap: str | None,
        command_config: Path | None,
        command_property: list[str],
        **given: Any,
    ) -> None:
        command(target=_target(bootstrap, command_config, command_property), **given)

    del run.__wrapped__
    run.__annotations__ = {}
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def _target(bootstrap: str | None, config: Path | None, properties: list[str]) -> Target:
    settings: dict[str, str] = {}
    if config is not None:
        from mainstem.config.definition import ConfigError
        from mainstem.config.properties import load_properties

        try:
            settings.update(load_properties(config))
        except ConfigError as error:
            raise CommandError(error.message, "name a file of NAME=VALUE lines", 2) from None
    settings.update(parse_pairs(properties, "--command-property"))
    if bootstrap is not None:
        settings["bootstrap.servers"] = bootstrap
    return Target(settings)
