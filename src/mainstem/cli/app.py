"""The typer application behind every subcommand but a plain `up`; loaded only when it is needed.

It holds no behaviour: it names the subcommands and their help, and turns CommandError into an exit code. Only
the subcommand that is asked for is imported; all of them when it is not clear which.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from mainstem import __version__
from mainstem.cli.errors import CommandError, report
from mainstem.cli.output.rendering import examples
from mainstem.cli.up.options import OPTION_SPECS, OptionSpec, UpOptions, checked

_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

UP_EXAMPLES = (
    examples(
        "mainstem up  [dim]# localhost:9092, data in your data home[/dim]",
        "mainstem up --port 0 --ephemeral  [dim]# a throw-away broker on a free port[/dim]",
        "mainstem up --data ./data --set log.retention.hours=24",
        "mainstem up --config server.properties  [dim]# a file written for Apache Kafka[/dim]",
        "mainstem up --nodes 3 --data ./cluster  [dim]# three nodes on ports 9092, 9093 and 9094[/dim]",
    )
    + "\n\nIn a pipe, a line that starts with [bold]mainstem ready[/bold] says that clients can connect."
)


def run(arguments: Sequence[str]) -> int:
    """Run one command line through typer and return its exit code."""
    wanted = arguments[0] if arguments else ""
    app = application([wanted] if wanted in _COMMANDS else list(_COMMANDS))
    try:
        code = app(list(arguments), prog_name="mainstem", standalone_mode=False)
    except SystemExit as leaving:
        code = leaving.code
    except CommandError as error:
        return report(error)
    except UnicodeEncodeError as error:  # of an argument: what a terminal or a script gave is kept as it was
        return report(CommandError(f"{error.object!r} is not UTF-8", "names, keys and values are UTF-8", 2))
    except _UsageError as error:
        return _report_usage(error)
    except typer.Abort:
        return report(CommandError("not done, as you said"))
    return code if isinstance(code, int) else 0


def _report_usage(error: Any) -> int:
    """A wrong command line, in the form of every other error. Its class has no public name in typer."""
    if type(error).__name__ == "NoArgsIsHelpError":  # the help is printed already
        return 2
    message = error.format_message().rstrip(".")
    is_group = error.ctx is None or hasattr(error.ctx.command, "commands")
    shown = "the commands" if is_group else "every option, with examples"
    hint = f"{error.ctx.command_path if error.ctx else 'mainstem'} --help shows {shown}"
    return report(CommandError(message[:1].lower() + message[1:], hint, 2))


def application(commands: Sequence[str]) -> typer.Typer:
    """A typer application with these subcommands."""
    app = typer.Typer(
        name="mainstem",
        help="A message queue that speaks the Kafka protocol.",
        epilog="Start with: mainstem up. Each command explains itself: mainstem COMMAND --help",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(_root)
    for name in commands:
        _COMMANDS[name](app)
    return app


def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", metavar="", help="Print the version and leave.")
    ] = False,
) -> None:
    if version:
        print(f"mainstem {__version__}")
        raise typer.Exit


def _add_up(app: typer.Typer) -> None:
    help_text = "Run a broker in the foreground until Ctrl-C or SIGTERM."
    app.command("up", help=help_text, epilog=UP_EXAMPLES)(_up)


def _function(name: str) -> Callable[[typer.Typer], None]:
    """A subcommand that is one function, named as it is, with its examples beside it."""

    def add(app: typer.Typer) -> None:
        folder = name.replace("-", "_")
        module = _module(folder)
        app.command(name, epilog=module.EXAMPLES)(getattr(module, folder))

    return add


def _group(name: str) -> Callable[[typer.Typer], None]:
    """A subcommand that has subcommands of its own."""

    def add(app: typer.Typer) -> None:
        app.add_typer(_module(name).app, name=name)

    return add


def _module(folder: str) -> Any:
    return importlib.import_module(f"mainstem.cli.{folder}.command")


_COMMANDS: dict[str, Callable[[typer.Typer], None]] = {
    "demo": _function("demo"),
    "up": _add_up,
    "cluster": _group("cluster"),
    "topics": _group("topics"),
    "config": _group("config"),
    "logs": _group("logs"),
    "produce": _function("produce"),
    "consume": _function("consume"),
    "groups": _group("groups"),
    "transactions": _group("transactions"),
    "pipeline": _group("pipeline"),
    "dump-log": _function("dump-log"),
    "storage": _group("storage"),
}


def _up_parameter(spec: OptionSpec) -> inspect.Parameter:
    """One option of `up` as typer wants it: the declaration itself lives in up_options."""
    annotation: Any = bool
    default: Any = False
    if spec.repeated:
        annotation, default = list[str], []
    elif spec.metavar is not None:
        annotation, default = (int if spec.metavar == "PORT" else str) | None, None
    option = typer.Option(
        *spec.flags, metavar=spec.metavar or "", help=spec.help, hidden=spec.hidden, show_default=False
    )
    return inspect.Parameter(
        spec.field, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, option]
    )


def _up(**values: Any) -> None:
    from mainstem.cli.up import command as up

    for spec in OPTION_SPECS:
        if spec.metavar is None:
            values[spec.field] = spec.flag_value if values[spec.field] else not spec.flag_value
    raise typer.Exit(up.run(checked(UpOptions(**values))))


_up.__signature__ = inspect.Signature([_up_parameter(spec) for spec in OPTION_SPECS])  # type: ignore[attr-defined]
