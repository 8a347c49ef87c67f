"""`mainstem pipeline`: write, check, explain, run and stop declared pipelines on Spark, and replay their
dead letters.

Only the command that is asked for loads what it needs; Spark itself is loaded by `run` and `explain` alone.
"""

from __future__ import annotations

from typing import Annotated

import typer

from mainstem.cli import pipeline_explain, pipeline_init, pipeline_replay, pipeline_run, pipeline_status
from mainstem.cli.pipeline_files import DEFAULT_FILE, File, mistakes, read, show, show_json
from mainstem.cli.render import examples, say

app = typer.Typer(
    help="Run data pipelines on Spark that a file declares: topics in, out to topics and tables.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

app.command("init", epilog=pipeline_init.EXAMPLES)(pipeline_init.init)


@app.command(
    "validate",
    epilog=examples(
        "mainstem pipeline validate  [dim]# pipeline.yaml[/dim]",
        "mainstem pipeline validate orders.yaml --json",
        "mainstem pipeline validate orders.yaml --no-sql  [dim]# without Java[/dim]",
    ),
)
def validate(
    file: File = DEFAULT_FILE,
    sql: Annotated[
        bool, typer.Option("--sql/--no-sql", help="Ask Spark's own parser about SQL; it needs Java.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print JSON for a script.")] = False,
) -> None:
    """Find every mistake in a pipeline file, without starting Spark."""
    document = read(file)
    problems = list(document.problems)
    left_out = "with --no-sql the grammar of SQL is not checked" if not sql else None
    if sql and document.pipeline is not None:
        from mainstem.spark.pipeline import spark_parser
        from mainstem.spark.pipeline.validate import readable, sql_pieces

        try:
            pieces = readable(sql_pieces(document.pipeline, document.folder))
            problems += spark_parser.syntax_problems(pieces)
        except spark_parser.NoParser as error:
            left_out = f"the grammar of SQL is not checked: {error}"
    if as_json:
        show_json(document, problems)
    else:
        show(document, problems)
    if left_out and not as_json:
        say(left_out)
    if problems:
        raise mistakes(document, problems)
    if not as_json and document.pipeline is not None:
        parts = document.pipeline
        counts = f"{len(parts.sources)} sources, {len(parts.steps)} steps, {len(parts.sinks)} sinks"
        print(f"{document.file}: no mistakes in {parts.name} ({counts})")


app.command("explain", epilog=pipeline_explain.EXAMPLES)(pipeline_explain.explain)
app.command("run", epilog=pipeline_run.EXAMPLES)(pipeline_run.run)
app.command("status", epilog=pipeline_status.STATUS_EXAMPLES)(pipeline_status.status)
app.command("stop", epilog=pipeline_status.STOP_EXAMPLES)(pipeline_status.stop)
app.command("replay-dead-letters", epilog=pipeline_replay.EXAMPLES)(pipeline_replay.replay_dead_letters)
