"""Finds the mistakes in a pipeline that its form does not show: names, files, schemas, times, settings.

Everything here runs without Spark and without a broker; what Spark's analyser finds is left to it. Each part
yields its own problems; `check` collects them all, so that one run shows every mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path as FilePath

from mainstem.spark.pipeline import sql_tokens
from mainstem.spark.pipeline.checking.options import check_options
from mainstem.spark.pipeline.checking.rules import CheckContext, bad_bootstrap, bad_topic, bad_trigger
from mainstem.spark.pipeline.graph import Graph
from mainstem.spark.pipeline.model import Pipeline
from mainstem.spark.pipeline.parts import SqlPiece
from mainstem.spark.pipeline.problems import Path, Problem

_VIEW_NAME = re.compile(r"[A-Za-z_]\w*")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


def check(pipeline: Pipeline, folder: FilePath) -> list[Problem]:
    """Every mistake in a pipeline whose files are looked for in `folder`."""
    graph = Graph(pipeline, folder)
    context = CheckContext(pipeline, folder, graph)
    found = [*_whole(pipeline), *_names(pipeline), *_sinks(context)]
    for section in ("sources", "steps", "sinks"):
        for name, part in getattr(pipeline, section).items():
            found += part.check((section, name), context)
    for piece in sql_pieces(pipeline, folder):
        found += _bad_sql(piece)
    found += check_options(context)
    return [*found, *graph.problems()]


def sql_pieces(pipeline: Pipeline, folder: FilePath) -> Iterator[SqlPiece]:
    """Every SQL text in a pipeline."""
    for section in ("sources", "steps", "sinks"):
        for name, part in getattr(pipeline, section).items():
            yield from part.sql_pieces((section, name), folder)


def _bad_sql(piece: SqlPiece) -> Iterator[Problem]:
    """What can be said without Spark's parser: whether quotes and brackets close."""
    try:
        sql_tokens.check(piece.text)
    except sql_tokens.SqlError as error:
        inside = sql_tokens.line_and_column(piece.text, error.position)
        yield Problem(piece.path, f"this is no SQL: {error.message}", inside=inside)


def _whole(pipeline: Pipeline) -> Iterator[Problem]:
    if pipeline.name and not _NAME.fullmatch(pipeline.name):
        hint = "use letters, digits, '.', '_' and '-'"
        yield Problem(("pipeline",), f"{pipeline.name!r} is no name for a pipeline", hint)
    if not pipeline.sources:
        yield Problem(("sources",), "there are no sources", "a pipeline reads at least one topic")
    if not pipeline.sinks:
        yield Problem(("sinks",), "there are no sinks", "a pipeline writes at least one view somewhere")
    yield from bad_bootstrap(pipeline.bootstrap, ("bootstrap",))
    yield from bad_trigger(pipeline.trigger, ("trigger",))
    if pipeline.dead_letters is not None:
        yield from bad_topic(pipeline.dead_letters.topic, ("dead_letters",))
        yield from bad_bootstrap(pipeline.dead_letters.bootstrap, ("dead_letters", "bootstrap"))
    for key in pipeline.kafka:
        if key.startswith("kafka."):
            yield Problem(("kafka", key), "leave the prefix kafka. out here", f"write {key[6:]}", at_key=True)
    for key in pipeline.spark:
        if not key.startswith("spark."):
            hint = f"write spark.{key}" if "." in key else "its settings start with spark."
            yield Problem(("spark", key), f"{key} is no setting of Spark", hint, at_key=True)


def _names(pipeline: Pipeline) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for section, parts in (("sources", pipeline.sources), ("steps", pipeline.steps)):
        for name in parts:
            path: Path = (section, name)
            if not _VIEW_NAME.fullmatch(name):
                hint = "use letters, digits and '_', a letter first, so that SQL can name it"
                yield Problem(path, f"{name!r} is no name for a view", hint, at_key=True)
            if name.lower() in seen:
                where = seen[name.lower()]
                yield Problem(path, f"there is a view {name!r} in {where} already", at_key=True)
            seen[name.lower()] = section
    for name in pipeline.sinks:
        if not _NAME.fullmatch(name):
            hint = "use letters, digits, '.', '_' and '-'"
            yield Problem(("sinks", name), f"{name!r} is no name for a sink", hint, at_key=True)
        if name.startswith("dead-letters."):
            message = "names that start with dead-letters. belong to the queries for dead letters"
            yield Problem(("sinks", name), message, "name it otherwise", at_key=True)


def _sinks(context: CheckContext) -> Iterator[Problem]:
    """What holds for every sink, and for those that would write into each other."""
    places: dict[tuple[str, str], str] = {}
    for name, sink in context.pipeline.sinks.items():
        yield from bad_trigger(sink.trigger, ("sinks", name, "trigger"))
        if context.graph.view(sink.source) is not None and not context.graph.streams(sink.source):
            message = f"{sink.source} comes from files only, nothing streams into it"
            yield Problem(("sinks", name, "from"), message, "join it with a view of a topic")
        if sink.place is not None:
            kind = sink.KIND[0]
            if (kind, sink.place) in places:
                message = f"{places[kind, sink.place]} writes there already"
                yield Problem(("sinks", name, kind), message, "give each its own place")
            places[kind, sink.place] = name
