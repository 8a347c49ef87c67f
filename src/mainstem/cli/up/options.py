"""The options of `mainstem up`, declared once: for the light parser here and for the help of the typer app.

It must not import anything heavy: this module is on the path from process start to a ready broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from mainstem.cli.errors import CommandError
from mainstem.nearest import suggestion

LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json")
NODES_MAX = 100


class UpOptions(Struct):
    """What was asked for on the command line; None where nothing was said."""

    data: str | None = None
    host: str | None = None
    port: int | None = None
    metrics_port: int | None = None
    nodes: str | None = None
    restart: bool = True
    config: str | None = None
    set: list[str] = []
    ephemeral: bool = False
    uvloop: bool = True
    log_level: str | None = None
    log_format: str | None = None
    owner_pipe: bool = False
    format_as: str | None = None


class OptionSpec(NamedTuple):
    """One command-line option: `field` of UpOptions, and `metavar` None for a flag that takes no value."""

    field: str
    flags: tuple[str, ...]
    metavar: str | None
    help: str
    repeated: bool = False
    flag_value: bool = True
    hidden: bool = False


OPTION_SPECS = (
    OptionSpec(
        "data",
        ("--data", "-d"),
        "DIR",
        "Where topics are kept. Default: the user's data home (~/.local/share/mainstem).",
    ),
    OptionSpec("host", ("--host",), "HOST", "Address to listen on and to advertise. Default: localhost."),
    OptionSpec(
        "port",
        ("--port", "-p"),
        "PORT",
        "Port to listen on; 0 picks a free one, named in the ready line. Default: 9092.",
    ),
    OptionSpec(
        "metrics_port",
        ("--metrics-port",),
        "PORT",
        "Serve /metrics for Prometheus, /healthz and /readyz on this port of localhost; 0 picks a free one.",
    ),
    OptionSpec(
        "nodes",
        ("--nodes",),
        "N",
        "Run a cluster of N nodes on this machine; with auto, one for each core. Node i listens on "
        "PORT + i - 1, keeps its data in DIR/node-i and its log in DIR/node-i.log, and is started again "
        "when it dies.",
    ),
    OptionSpec(
        "restart",
        ("--no-restart",),
        None,
        "With --nodes: leave a node that died as it is.",
        flag_value=False,
    ),
    OptionSpec(
        "config", ("--config", "-c"), "FILE", "A Kafka server.properties file. The options here win over it."
    ),
    OptionSpec(
        "set",
        ("--set", "-s"),
        "KEY=VALUE",
        "One broker setting; `mainstem config describe` lists them. May be repeated.",
        repeated=True,
    ),
    OptionSpec(
        "ephemeral", ("--ephemeral",), None, "Keep the data in a temporary directory that is removed at exit."
    ),
    OptionSpec(
        "uvloop", ("--no-uvloop",), None, "Use Python's own event loop in place of uvloop.", flag_value=False
    ),
    OptionSpec("log_level", ("--log-level",), "LEVEL", f"One of {', '.join(LOG_LEVELS)}. Default: info."),
    OptionSpec(
        "log_format",
        ("--log-format",),
        "FORMAT",
        "How events look on standard error: text or json. Default: text on a terminal, json elsewhere.",
    ),
    OptionSpec(
        "owner_pipe",
        ("--owner-pipe",),
        None,
        "Shut down when standard input is closed; --ephemeral data is then removed, and kept on SIGTERM.",
        hidden=True,
    ),
    OptionSpec(
        "format_as",
        ("--format-as",),
        "CLUSTER_ID",
        "Format the data directories for this cluster first, where that was never done.",
        hidden=True,
    ),
)

_SPEC_BY_FLAG = {flag: spec for spec in OPTION_SPECS for flag in spec.flags}


def parse(arguments: Sequence[str]) -> UpOptions:
    """Read `up`'s command line; raises CommandError with one line that names the mistake."""
    options = UpOptions(set=[])
    rest = list(arguments)
    while rest:
        flag, given, value = rest.pop(0).partition("=")
        spec = _SPEC_BY_FLAG.get(flag)
        if spec is None:
            raise _unknown(flag)
        if spec.metavar is None:
            if given:
                raise _usage(f"{flag} takes no value")
            setattr(options, spec.field, spec.flag_value)
            continue
        if not given:
            if not rest:
                raise _usage(f"{flag} needs a value ({spec.metavar})")
            value = rest.pop(0)
        _assign(options, spec, value)
    return checked(options)


def checked(options: UpOptions) -> UpOptions:
    """Refuse values and combinations that no start could honour."""
    for flag, port in (("--port", options.port), ("--metrics-port", options.metrics_port)):
        if port is not None and not 0 <= port <= 65535:
            raise _usage(f"{flag} {port} is out of range: use 0 to 65535 (0 picks a free one)")
    if options.log_level is not None and options.log_level not in LOG_LEVELS:
        raise _usage(f"--log-level {options.log_level} is not one of {', '.join(LOG_LEVELS)}")
    if options.log_format is not None and options.log_format not in LOG_FORMATS:
        raise _usage(f"--log-format {options.log_format} is not one of {', '.join(LOG_FORMATS)}")
    if options.ephemeral and options.data is not None and not options.owner_pipe:
        raise _usage("--ephemeral removes its data at exit: give either --data or --ephemeral, not both")
    _check_nodes(options)
    for setting in options.set:
        if "=" not in setting:
            raise _usage(f"--set {setting} has no value: write --set {setting}=VALUE")
    return options


def _check_nodes(options: UpOptions) -> None:
    nodes = options.nodes
    if nodes is None:
        if not options.restart:
            raise _usage("--no-restart goes with --nodes: a single broker is never started again")
        return
    if nodes != "auto" and not (nodes.isdecimal() and 1 <= int(nodes) <= NODES_MAX):
        raise _usage(f"--nodes {nodes} is neither a number from 1 to {NODES_MAX} nor auto")


def _assign(options: UpOptions, spec: OptionSpec, value: str) -> None:
    if spec.metavar == "PORT":
        if not value.lstrip("-").isdecimal():
            raise _usage(f"{spec.flags[0]} {value} is not a number")
        setattr(options, spec.field, int(value))
    elif spec.repeated:
        options.set.append(value)
    else:
        setattr(options, spec.field, value)


def _unknown(flag: str) -> CommandError:
    if not flag.startswith("-"):
        return _usage(f"unexpected argument {flag!r}")
    near = suggestion(flag, _SPEC_BY_FLAG)
    return _usage(f"unknown option {flag}" + (f" ({near})" if near else ""))


def _usage(message: str) -> CommandError:
    return CommandError(message, "mainstem up --help shows every option, with examples", exit_code=2)
