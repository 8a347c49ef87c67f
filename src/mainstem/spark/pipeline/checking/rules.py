"""Checks that several parts of a pipeline share: topics, addresses, spans of time, columns, expressions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import NamedTuple

from mainstem.spark.pipeline import sql_tokens, times
from mainstem.spark.pipeline.file import functions
from mainstem.spark.pipeline.graph import Graph
from mainstem.spark.pipeline.model import Function, Pipeline
from mainstem.spark.pipeline.problems import Path, Problem, did_you_mean
from mainstem.spark.pipeline.schemas.ddl import Schema

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:,\[\]]+):(\d{1,5})")


class Context(NamedTuple):
    """What a check may look at."""

    pipeline: Pipeline
    folder: FilePath
    graph: Graph
    columns: dict[str, Schema | None]


def bad_topic(name: str, path: Path) -> Iterator[Problem]:
    if not _TOPIC.fullmatch(name) or name in (".", ".."):
        hint = "use up to 249 letters, digits, '.', '_' and '-'"
        yield Problem(path, f"{name!r} is no name for a topic", hint)


def bad_bootstrap(text: str, path: Path) -> Iterator[Problem]:
    for address in text.split(","):
        match = _ADDRESS.fullmatch(address.strip())
        if match is None or not 0 < int(match[2]) < 65536:
            yield Problem(path, f"{address.strip()!r} is not HOST:PORT", "for example localhost:9092")


def bad_span(text: str, path: Path) -> Iterator[Problem]:
    if times.span(text) is None:
        yield Problem(path, f"{text!r} is no span of time", "for example 30 seconds, 10 minutes or 2 hours")


def bad_expression(text: str, path: Path) -> Iterator[Problem]:
    """What can be said of a SQL expression without Spark's parser: quotes and brackets close."""
    try:
        sql_tokens.check(text)
    except sql_tokens.SqlError as error:
        inside = sql_tokens.line_and_column(text, error.position)
        yield Problem(path, f"this is no SQL: {error.message}", inside=inside)


def bad_function(function: Function, path: Path, folder: FilePath) -> Iterator[Problem]:
    try:
        functions.resolve(function, folder)
    except functions.FunctionError as error:
        yield Problem(path, str(error), error.hint)


def missing_column(
    name: str, view: str | int, path: Path, context: Context, *, time: bool = False
) -> Iterator[Problem]:
    """The column is not among those of the view, where they are known; or it holds no time but should."""
    found = context.graph.view(str(view))
    columns = context.columns.get(found) if found is not None else None
    if columns is None:
        return
    by_lower = {column.name.lower(): column for column in columns}
    column = by_lower.get(name.split(".", maxsplit=1)[0].lower())
    if column is None:
        hint = did_you_mean(name, [other.name for other in columns], "its columns are")
        yield Problem(path, f"{found} has no column {name!r}", hint)
    elif time and column.type.name not in ("timestamp", "timestamp_ntz", "unknown", "struct"):
        hint = "use a TIMESTAMP column; SQL can make one: `CAST(ms / 1000 AS TIMESTAMP)`"
        yield Problem(path, f"{name} is {column.type.ddl()}, not a time", hint)
