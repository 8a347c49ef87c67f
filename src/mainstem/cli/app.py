"""The typer application behind every subcommand but a plain `up`; loaded only when it is needed.

It holds no behaviour: it names the subcommands, their help, and turns CommandError into an exit code.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from mainstem import __version__
from mainstem.cli import consume, dump_log, produce, topics
from mainstem.cli.errors import CommandError, report
from mainstem.cli.up_options import OPTION_SPECS, OptionSpec, UpOptions, checked

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

UP_HELP = "Run a broker in the foreground until Ctrl-C or SIGTERM."
UP_EXAMPLES = """[bold]Examples[/bold]
  mainstem up  [dim]# localhost:9092, data in your data home[/dim]
  mainstem up --port 0 --ephemeral  [dim]# a throw-away broker on a free port[/dim]
  mainstem up --data ./data --set log.retention.hours=24
  mainstem up --config server.properties  [dim]# a file written for Apache Kafka[/dim]

In a pipe, the line that starts with [bold]mainstem ready[/bold] tells that clients can connect, and where.
"""


def run(arguments: Sequence[str]) -> int:
    """Run one command line through typer and return its exit code."""
    try:
        code = app(list(arguments), prog_name="mainstem", standalone_mode=True)
    except SystemExit as leaving:
        code = leaving.code
    except CommandError as error:
        return report(error)
    except KeyboardInterrupt:
        return 130
    return code if isinstance(code, int) else 0


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", metavar="", help="Print the version and leave.")
    ] = False,
) -> None:
    if version:
        print(f"mainstem {__version__}")
        raise typer.Exit


def _up_parameter(spec: OptionSpec) -> inspect.Parameter:
    """One option of `up` as typer wants it: the declaration itself lives in up_options."""
    annotation: Any = bool
    default: Any = False
    if spec.repeated:
        annotation, default = list[str], []
    elif spec.metavar is not None:
        annotation, default = (int if spec.field == "port" else str) | None, None
    option = typer.Option(
        *spec.flags, metavar=spec.metavar or "", help=spec.help, hidden=spec.hidden, show_default=False
    )
    return inspect.Parameter(
        spec.field, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, option]
    )


def _up(**values: Any) -> None:
    from mainstem.cli import up

    for spec in OPTION_SPECS:
        if spec.metavar is None:
            values[spec.field] = spec.flag_value if values[spec.field] else not spec.flag_value
    raise typer.Exit(up.run(checked(UpOptions(**values))))


_up.__signature__ = inspect.Signature([_up_parameter(spec) for spec in OPTION_SPECS])  # type: ignore[attr-defined]
app.command("up", help=UP_HELP, epilog=UP_EXAMPLES)(_up)
app.command("produce", epilog=produce.EXAMPLES)(produce.produce)
app.command("consume", epilog=consume.EXAMPLES)(consume.consume)
app.command("dump-log", epilog=dump_log.EXAMPLES)(dump_log.dump_log)
app.add_typer(topics.app, name="topics")
