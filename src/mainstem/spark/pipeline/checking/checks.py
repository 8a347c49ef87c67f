"""Finds the mistakes in a pipeline that its form does not show: names, files, schemas, times, settings.

Everything here runs without Spark and without a broker. Each function looks at one kind of part and yields
its problems; `check` collects them all, so that one run shows every mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path as FilePath

from mainstem.spark.pipeline import checks_sinks, checks_steps, times
from mainstem.spark.pipeline.checking import options as checks_options
from mainstem.spark.pipeline.checking.rules import (
    Context,
    bad_bootstrap,
    bad_expression,
    bad_span,
    bad_topic,
    missing_column,
)
from mainstem.spark.pipeline.checks_decode import check_decode
from mainstem.spark.pipeline.columns import known_columns
from mainstem.spark.pipeline.graph import Graph
from mainstem.spark.pipeline.model import DeadLetters, FileSource, Pipeline, TopicSource, Watermark
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.schemas import definitions

_VIEW_NAME = re.compile(r"[A-Za-z_]\w*")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_FILE_ENDINGS = {".csv", ".json", ".jsonl", ".parquet", ".orc", ".txt"}


def check(pipeline: Pipeline, folder: FilePath) -> list[Problem]:
    """Every mistake in a pipeline whose files are looked for in `folder`."""
    graph = Graph(pipeline, folder)
    context = Context(pipeline, folder, graph, known_columns(graph, folder))
    found = [*_whole(pipeline), *_names(pipeline)]
    for name, source in pipeline.sources.items():
        path: Path = ("sources", name)
        found += _file_source(source, path, folder) if isinstance(source, FileSource) else ()
        found += _topic_source(source, path, context) if isinstance(source, TopicSource) else ()
    for name, step in pipeline.steps.items():
        found += checks_steps.check_step(name, step, context)
    for name, sink in pipeline.sinks.items():
        found += checks_sinks.check_sink(name, sink, context)
    found += checks_sinks.check_together(context)
    found += checks_options.check_options(context)
    return [*found, *graph.problems()]


def _whole(pipeline: Pipeline) -> Iterator[Problem]:
    if pipeline.name and not _NAME.fullmatch(pipeline.name):
        hint = "use letters, digits, '.', '_' and '-'"
        yield Problem(("pipeline",), f"{pipeline.name!r} is no name for a pipeline", hint)
    if not pipeline.sources:
        yield Problem(("sources",), "there are no sources", "a pipeline reads at least one topic")
    if not pipeline.sinks:
        yield Problem(("sinks",), "there are no sinks", "a pipeline writes at least one view somewhere")
    if pipeline.bootstrap is not None:
        yield from bad_bootstrap(pipeline.bootstrap, ("bootstrap",))
    if pipeline.trigger is not None and times.trigger(pipeline.trigger) is None:
        yield Problem(
            ("trigger",),
            f"{pipeline.trigger!r} is no trigger",
            "use a time between batches such as `5 seconds`, or `available now`",
        )
    if isinstance(pipeline.dead_letters, DeadLetters):
        yield from bad_topic(pipeline.dead_letters.topic, ("dead_letters",))
        if pipeline.dead_letters.bootstrap is not None:
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


def _file_source(source: FileSource, path: Path, folder: FilePath) -> Iterator[Problem]:
    if "://" not in source.file:
        place = folder / FilePath(source.file).expanduser()
        if not place.exists() and not any(mark in source.file for mark in "*?["):
            yield Problem((*path, "file"), f"there is no {source.file}")
    if source.format is None and FilePath(source.file).suffix.lower() not in _FILE_ENDINGS:
        hint = "add format: csv, json, parquet, orc or text"
        yield Problem((*path, "file"), f"the format of {source.file} cannot be told by its name", hint)
    if source.schema is not None:
        try:
            definitions.parse_ddl(source.schema, "schema")
        except definitions.SchemaError as error:
            yield Problem((*path, "schema"), str(error), error.hint, error.inside)


def _topic_source(source: TopicSource, path: Path, context: Context) -> Iterator[Problem]:
    yield from _subscription(source, path)
    if source.bootstrap is not None:
        yield from bad_bootstrap(source.bootstrap, (*path, "bootstrap"))
    if source.start not in ("earliest", "latest") and times.point_ms(source.start) is None:
        hint = "use earliest, latest or a time such as 2026-01-31T12:00:00Z"
        yield Problem((*path, "from"), f"{source.start!r} is no place to start", hint)
    if source.rate is not None and source.rate < 1:
        yield Problem((*path, "rate"), "at least one record must be read in a batch")
    if source.on_error == "dead_letter" and context.pipeline.dead_letters is None:
        hint = "add dead_letters: TOPIC at the top"
        yield Problem((*path, "on_error"), "there is no topic for dead letters", hint)
    yield from check_decode(source.decode, (*path, "decode"), context.folder)
    yield from _required(source, path)
    yield from _metadata(source, path)
    if isinstance(source.watermark, Watermark):
        where: Path = (*path, "watermark")
        yield from bad_span(source.watermark.delay, (*where, "delay"))
        yield from missing_column(source.watermark.column, path[1], (*where, "column"), context, time=True)


def _subscription(source: TopicSource, path: Path) -> Iterator[Problem]:
    given = [name for name in ("topic", "topics", "pattern") if getattr(source, name) is not None]
    if len(given) > 1:
        yield Problem((*path, given[1]), f"{' and '.join(given)} exclude each other", at_key=True)
    if source.topic is not None:
        yield from bad_topic(source.topic, (*path, "topic"))
    for index, topic in enumerate(source.topics or ()):
        yield from bad_topic(topic, (*path, "topics", index))
    if source.topics == []:
        yield Problem((*path, "topics"), "the list is empty")
    if source.pattern is not None:
        try:
            re.compile(source.pattern)
        except re.error as error:
            yield Problem((*path, "pattern"), f"this is no regular expression: {error}")


def _required(source: TopicSource, path: Path) -> Iterator[Problem]:
    for name, condition in source.require.items():
        yield from bad_expression(condition, (*path, "require", name))
    if source.require and source.decode.format == "raw":
        yield Problem(
            (*path, "require"), "rules need decoded values", "add decode with a format and a schema"
        )


def _metadata(source: TopicSource, path: Path) -> Iterator[Problem]:
    for index, name in enumerate(source.metadata):
        if name in source.metadata[:index]:
            yield Problem((*path, "metadata", index), f"{name} is there twice")
