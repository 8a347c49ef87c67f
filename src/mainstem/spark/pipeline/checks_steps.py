"""The checks of each kind of step."""

from __future__ import annotations

from collections.abc import Iterator

from mainstem.durations import duration_ms
from mainstem.spark.pipeline import sql_tokens
from mainstem.spark.pipeline.checking.rules import (
    Context,
    bad_expression,
    bad_function,
    bad_span,
    missing_column,
)
from mainstem.spark.pipeline.columns import watermarked
from mainstem.spark.pipeline.graph import sql_text
from mainstem.spark.pipeline.model import (
    AggregateStep,
    DeduplicateStep,
    JoinStep,
    PythonStep,
    SqlStep,
    StatefulStep,
    Step,
    Unread,
    WatermarkStep,
    Window,
)
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.schemas import definitions


def check_step(name: str, step: Step, context: Context) -> Iterator[Problem]:
    path: Path = ("steps", name)
    if isinstance(step, SqlStep):
        yield from _sql(step, path, context)
    elif isinstance(step, PythonStep):
        yield from bad_function(step.python, (*path, "python"), context.folder)
        if step.inputs == []:
            yield Problem((*path, "from"), "the function needs at least one view")
    elif isinstance(step, WatermarkStep):
        yield from missing_column(step.watermark, step.source, (*path, "watermark"), context, time=True)
        yield from bad_span(step.delay, (*path, "delay"))
    elif isinstance(step, DeduplicateStep):
        yield from _deduplicate(step, path, context)
    elif isinstance(step, AggregateStep):
        yield from _aggregate(step, path, context)
    elif isinstance(step, JoinStep):
        yield from _join(step, path, context)
    elif isinstance(step, StatefulStep):
        yield from _stateful(step, path, context)


def _sql(step: SqlStep, path: Path, context: Context) -> Iterator[Problem]:
    if step.sql is not None and step.sql_file is not None:
        yield Problem((*path, "sql_file"), "sql and sql_file exclude each other", at_key=True)
        return
    where: Path = (*path, "sql" if step.sql is not None else "sql_file")
    try:
        text = sql_text(step, context.folder)
        found = sql_tokens.check(text)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        yield Problem(where, f"{step.sql_file} cannot be read: {reason.lower()}")
        return
    except sql_tokens.SqlError as error:
        inside = sql_tokens.line_and_column(text, error.position)
        yield Problem(where, f"this is no SQL: {error.message}", inside=inside)
        return
    if found[0].keyword not in ("SELECT", "WITH", "FROM", "VALUES", "TABLE") and found[0].text != "(":
        yield Problem(where, f"a step's SQL is a query, not {found[0].text}", "it starts with SELECT or WITH")
    ends = [token for token in found[:-1] if token.text == ";" and token.kind == "symbol"]
    if ends:
        inside = sql_tokens.line_and_column(text, ends[0].position)
        yield Problem(where, "a step has one query", "give the second one its own step", inside)


def _deduplicate(step: DeduplicateStep, path: Path, context: Context) -> Iterator[Problem]:
    if not step.deduplicate:
        yield Problem((*path, "deduplicate"), "name at least one column")
    for index, column in enumerate(step.deduplicate):
        yield from missing_column(column, step.source, (*path, "deduplicate", index), context)
    if step.within_watermark and _lacks_watermark(step.source, context):
        yield Problem(
            path,
            f"{step.source} has no watermark, so no key could ever be forgotten",
            "give it a watermark, or set within_watermark: false to keep every key for ever",
            at_key=True,
        )


def _lacks_watermark(view: str, context: Context) -> bool:
    """A stream that has certainly none: a function may add one where nobody sees it."""
    parts = [context.graph.definition(name) for name in context.graph.upstream(view)]
    if any(isinstance(part, PythonStep | Unread) for part in parts) or not parts:
        return False
    return context.graph.streams(view) and not watermarked(context.graph, view)


def _aggregate(step: AggregateStep, path: Path, context: Context) -> Iterator[Problem]:
    if not step.aggregate:
        yield Problem((*path, "aggregate"), "name at least one column, such as `total: sum(amount)`")
    for name, expression in step.aggregate.items():
        yield from bad_expression(expression, (*path, "aggregate", name))
    for index, column in enumerate(step.by):
        yield from missing_column(column, step.source, (*path, "by", index), context)
    names = [*step.by, *step.aggregate]
    for name in step.aggregate:
        if [other.lower() for other in names].count(name.lower()) > 1:
            yield Problem((*path, "aggregate", name), f"there would be two columns {name}", at_key=True)
    if isinstance(step.window, Window):
        yield from _window(step.window, step.source, (*path, "window"), context)


def _window(window: Window, source: str, path: Path, context: Context) -> Iterator[Problem]:
    yield from missing_column(window.column, source, (*path, "column"), context, time=True)
    if (window.size is None) == (window.gap is None):
        yield Problem(path, "a window needs either a size or, for sessions, a gap", at_key=True)
    if window.slide is not None and window.gap is not None:
        yield Problem((*path, "slide"), "sessions do not slide", at_key=True)
    for key in ("size", "slide", "gap"):
        span = getattr(window, key)
        if span is not None:
            yield from bad_span(span, (*path, key))
    size, slide = duration_ms(window.size or ""), duration_ms(window.slide or "")
    if size is not None and slide is not None and slide > size:
        message = (
            f"windows of {window.size} that are {window.slide} apart would leave out what is between them"
        )
        yield Problem((*path, "slide"), message, f"slide by {window.size} at most")


def _join(step: JoinStep, path: Path, context: Context) -> Iterator[Problem]:
    if len(step.join) != 2:
        yield Problem((*path, "join"), f"a join has two views, not {len(step.join)}", "chain several joins")
        return
    left, right = step.join
    if left.lower() == right.lower():
        yield Problem((*path, "join", 1), "a view cannot be joined with itself", "make a second view of it")
    if isinstance(step.on, str):
        yield from bad_expression(step.on, (*path, "on"))
    else:
        for index, column in enumerate(step.on):
            for view in step.join:
                yield from missing_column(column, view, (*path, "on", index), context)
    for index, expression in enumerate(step.select or ()):
        yield from bad_expression(expression, (*path, "select", index))
    both = all(context.graph.streams(view) for view in step.join)
    if both and step.type != "inner":
        for index, view in enumerate(step.join):
            if _lacks_watermark(view, context):
                yield Problem(
                    (*path, "join", index),
                    f"a {step.type} join of streams needs watermarks on both sides; {view} has none",
                    "add one, and a condition on time to `on`",
                )


def _stateful(step: StatefulStep, path: Path, context: Context) -> Iterator[Problem]:
    yield from bad_function(step.stateful, (*path, "stateful"), context.folder)
    if not step.by:
        yield Problem((*path, "by"), "name at least one column")
    for index, column in enumerate(step.by):
        yield from missing_column(column, step.source, (*path, "by", index), context)
    try:
        definitions.parse_ddl(step.schema, "schema")
    except definitions.SchemaError as error:
        yield Problem((*path, "schema"), str(error), error.hint, error.inside)
    if step.time == "event" and _lacks_watermark(step.source, context):
        yield Problem((*path, "time"), f"timers by event time need a watermark; {step.source} has none")
