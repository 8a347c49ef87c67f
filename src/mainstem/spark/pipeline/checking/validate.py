"""Everything that can be said of a pipeline file before Spark starts, in one call.

The form and the names are checked here; the grammar of the SQL by Spark's own parser in a bare Java process,
which is no Spark: no session, no cluster, no port. Without Java that part is left out, and the caller told
so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from mainstem.spark.pipeline import sql_tokens
from mainstem.spark.pipeline.checking import checks
from mainstem.spark.pipeline.file import reader
from mainstem.spark.pipeline.file.reader import Document
from mainstem.spark.pipeline.graph import sql_text
from mainstem.spark.pipeline.model import AggregateStep, JoinStep, Pipeline, SqlStep, TopicSink, TopicSource
from mainstem.spark.pipeline.problems import Path, Problem


class SqlPiece(NamedTuple):
    """A SQL text of a pipeline: a whole query or an expression."""

    path: Path
    text: str
    is_query: bool


def validate(pipeline: Pipeline | Any, folder: FilePath | None = None) -> list[Problem]:
    """Every mistake in a pipeline that a program has built."""
    return checked(reader.from_python(pipeline, folder=folder)).problems


def checked(document: Document) -> Document:
    """The document with every problem in it, in the order of the file."""
    problems = list(document.problems)
    if document.pipeline is not None:
        problems += checks.check(document.pipeline, document.folder)
    unique = list(dict.fromkeys(problems))
    unique.sort(key=lambda problem: document.locate(problem) or (0, 0))
    return document._replace(problems=unique)


def sql_pieces(pipeline: Pipeline, folder: FilePath) -> Iterator[SqlPiece]:
    """Every SQL text in a pipeline that Spark's parser can be asked about."""
    for name, step in pipeline.steps.items():
        path: Path = ("steps", name)
        if isinstance(step, SqlStep):
            key = "sql" if step.sql is not None else "sql_file"
            try:
                yield SqlPiece((*path, key), sql_text(step, folder), True)
            except (OSError, UnicodeDecodeError):
                continue
        elif isinstance(step, AggregateStep):
            for column, expression in step.aggregate.items():
                yield SqlPiece((*path, "aggregate", column), expression, False)
        elif isinstance(step, JoinStep):
            if isinstance(step.on, str):
                yield SqlPiece((*path, "on"), step.on, False)
            for index, expression in enumerate(step.select or ()):
                yield SqlPiece((*path, "select", index), expression, False)
    for name, source in pipeline.sources.items():
        if isinstance(source, TopicSource):
            for rule, condition in source.require.items():
                yield SqlPiece(("sources", name, "require", rule), condition, False)
    for name, sink in pipeline.sinks.items():
        if isinstance(sink, TopicSink):
            for key in ("key", "value", "partition"):
                if getattr(sink, key) is not None:
                    yield SqlPiece(("sinks", name, key), getattr(sink, key), False)
            for header, expression in sink.headers.items():
                yield SqlPiece(("sinks", name, "headers", header), expression, False)


def readable(pieces: Iterator[SqlPiece]) -> Iterator[SqlPiece]:
    """Those whose quotes and brackets close; of the others it is said already."""
    for piece in pieces:
        try:
            sql_tokens.check(piece.text)
        except sql_tokens.SqlError:
            continue
        yield piece
