"""`mainstem pipeline validate`: shows every mistake in a pipeline file, before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mainstem.cli.output.rendering import examples
from mainstem.cli.pipeline.files import DEFAULT_FILE, File, mistakes, read, show, show_json
from mainstem.cli.streams import say

if TYPE_CHECKING:
    from mainstem.spark.pipeline.file.reader import Document
    from mainstem.spark.pipeline.problems import Problem

EXAMPLES = examples(
    "mainstem pipeline validate  [dim]# pipeline.yaml[/dim]",
    "mainstem pipeline validate orders.yaml --json",
    "mainstem pipeline validate orders.yaml --no-sql  [dim]# without Java[/dim]",
)


def validate(
    file: File = DEFAULT_FILE,
    sql: Annotated[
        bool,
        typer.Option("--sql/--no-sql", help="Let Spark check SQL, columns and functions; it needs Java."),
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print JSON for a script.")] = False,
) -> None:
    """Find every mistake in a pipeline file, without running it and without a broker."""
    document = read(file)
    problems, left_out = list(document.problems), "with --no-sql, SQL and columns are not checked"
    if sql and document.pipeline is not None:
        found, left_out = _by_spark(document)
        problems = sorted([*problems, *found], key=lambda problem: document.locate(problem) or (0, 0))
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


def _by_spark(document: Document) -> tuple[list[Problem], str]:
    """What Spark finds, and what it was not asked."""
    from mainstem.spark.pipeline.checking import spark_parser
    from mainstem.spark.pipeline.checking.spark_checks import checked_by_spark

    try:
        found = checked_by_spark(document)
    except spark_parser.NoParser as error:
        return [], f"SQL and columns are not checked: {error}"
    if found.unknown:
        names = ", ".join(found.unknown)
        return found.problems, f"what is made of {names} is not checked: its schema is inferred when it runs"
    return found.problems, ""
