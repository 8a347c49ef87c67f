"""The checks of each kind of sink, and of all sinks together."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path as FilePath

from mainstem.spark.pipeline import avro_schema, times
from mainstem.spark.pipeline.addresses import AddressError, database
from mainstem.spark.pipeline.checking.rules import (
    Context,
    bad_bootstrap,
    bad_expression,
    bad_function,
    bad_topic,
    missing_column,
)
from mainstem.spark.pipeline.columns import watermarked
from mainstem.spark.pipeline.graph import sql_text
from mainstem.spark.pipeline.model import (
    AggregateStep,
    ConsoleSink,
    DeduplicateStep,
    DeltaSink,
    FileSource,
    IcebergSink,
    JdbcSink,
    JoinStep,
    ParquetSink,
    PythonSink,
    Sink,
    SqlStep,
    TopicSink,
    TopicSource,
    WatermarkStep,
)
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.schemas import definitions
from mainstem.spark.source.patterns import matches

_NARROWER = "a pattern is searched for anywhere in a name: let ^ and $ bound it"


def check_sink(name: str, sink: Sink, context: Context) -> Iterator[Problem]:
    path: Path = ("sinks", name)
    if sink.trigger is not None and times.trigger(sink.trigger) is None:
        hint = "use a time between batches such as `5 seconds`, or `available now`"
        yield Problem((*path, "trigger"), f"{sink.trigger!r} is no trigger", hint)
    if context.graph.view(sink.source) is not None and not context.graph.streams(sink.source):
        message = f"{sink.source} comes from files only, nothing streams into it"
        yield Problem((*path, "from"), message, "join it with a view of a topic")
    yield from _mode(sink, path, context)
    if isinstance(sink, TopicSink):
        yield from _topic(sink, path, context)
    elif isinstance(sink, ParquetSink | DeltaSink):
        for index, column in enumerate(sink.partition_by):
            yield from missing_column(column, sink.source, (*path, "partition_by", index), context)
        if isinstance(sink, DeltaSink):
            yield from _needs("deltalake", (*path, "delta"))
    elif isinstance(sink, IcebergSink):
        yield from _needs("pyiceberg", (*path, "iceberg"))
        if "." not in sink.iceberg.strip("."):
            hint = f"write NAMESPACE.{sink.iceberg}"
            yield Problem((*path, "iceberg"), f"{sink.iceberg!r} has no namespace", hint)
    elif isinstance(sink, JdbcSink):
        yield from _jdbc(sink, path, context)
    elif isinstance(sink, PythonSink):
        yield from bad_function(sink.python, (*path, "python"), context.folder)
    elif isinstance(sink, ConsoleSink) and sink.console < 1:
        yield Problem((*path, "console"), "show at least one row")


def _mode(sink: Sink, path: Path, context: Context) -> Iterator[Problem]:
    """Append writes a row when it is final, and an aggregate is final only behind a watermark."""
    mode = getattr(sink, "mode", "append")
    parts = [context.graph.definition(view) for view in context.graph.upstream(sink.source)]
    aggregates = [part for part in parts if isinstance(part, AggregateStep)]
    if mode == "complete" and parts and not any(_may_aggregate(part, context.folder) for part in parts):
        message = f"complete writes all rows of an aggregate again each time, and {sink.source} is none"
        yield Problem((*path, "mode"), message, "use append")
    if mode == "append" and aggregates and not watermarked(context.graph, sink.source):
        hint = "give the source a watermark"
        if hasattr(sink, "mode"):
            hint += ", or the sink mode: update"
        message = f"{sink.source} is an aggregate without a watermark, so none of its rows is ever final"
        yield Problem((*path, "from"), message, hint)


_AGGREGATING = re.compile(r"\b(group|distinct|union|intersect|except)\b|\w\s*\(", re.IGNORECASE)


def _may_aggregate(part: object, folder: FilePath) -> bool:
    """Without Spark's parser, a query that calls any function may be an aggregate."""
    if isinstance(part, SqlStep):
        try:
            return _AGGREGATING.search(sql_text(part, folder)) is not None
        except (OSError, UnicodeDecodeError):
            return True
    return not isinstance(part, TopicSource | FileSource | WatermarkStep | DeduplicateStep | JoinStep)


def _topic(sink: TopicSink, path: Path, context: Context) -> Iterator[Problem]:
    yield from bad_topic(sink.topic, (*path, "topic"))
    if sink.bootstrap is not None:
        yield from bad_bootstrap(sink.bootstrap, (*path, "bootstrap"))
    for key in ("key", "value", "partition"):
        expression = getattr(sink, key)
        if expression is not None:
            yield from bad_expression(expression, (*path, key))
            if sink.encode == "raw":
                message = f"with encode: raw the view's own column {key} is written"
                yield Problem((*path, key), message, "leave one of the two out", at_key=True)
    for name, expression in sink.headers.items():
        yield from bad_expression(expression, (*path, "headers", name))
    if sink.encode == "raw":
        yield from missing_column("value", sink.source, (*path, "encode"), context)
    if sink.encode == "avro":
        yield from _avro(sink, path, context.folder)
    elif sink.schema_file is not None:
        yield Problem((*path, "schema_file"), "only encode: avro has a schema", at_key=True)


def _avro(sink: TopicSink, path: Path, folder: FilePath) -> Iterator[Problem]:
    if sink.schema_file is None:
        yield Problem((*path, "encode"), "avro needs schema_file, the schema to write with")
        return
    try:
        avro_schema.columns(definitions.read_bytes(sink.schema_file, folder, "schema_file").decode())
    except (definitions.SchemaError, avro_schema.AvroSchemaError, UnicodeDecodeError) as error:
        yield Problem((*path, "schema_file"), str(error))


def _jdbc(sink: JdbcSink, path: Path, context: Context) -> Iterator[Problem]:
    for index, column in enumerate(sink.keys):
        yield from missing_column(column, sink.source, (*path, "keys", index), context)
    if sink.mode == "update" and not sink.keys:
        yield Problem((*path, "mode"), "rows can be updated only by their keys", "add keys: [column]")
    if sink.mode == "complete":
        yield Problem((*path, "mode"), "a table takes append or update", "use update with keys")
    if sink.jar is not None:
        if not (context.folder / FilePath(sink.jar).expanduser()).is_file():
            yield Problem((*path, "jar"), f"there is no {sink.jar}")
        if not sink.jdbc.startswith("jdbc:"):
            yield Problem(
                (*path, "jdbc"), "with a jar the address is Java's", "for example jdbc:postgresql://..."
            )
        if sink.keys:
            message = "Spark's own writer only appends"
            yield Problem(
                (*path, "keys"), message, "leave jar out: the Python driver replaces rows", at_key=True
            )
        return
    try:
        found = database(sink.jdbc, sink.driver)
    except AddressError as error:
        yield Problem((*path, "jdbc"), str(error), error.hint)
        return
    yield from _needs(found.driver, (*path, "driver" if sink.driver else "jdbc"))


def _needs(module: str, path: Path) -> Iterator[Problem]:
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None:
        yield Problem(path, f"this needs the Python package {module}", f"pip install {module}")


def check_together(context: Context) -> Iterator[Problem]:
    """Sinks that would write into each other, and loops through topics."""
    places: dict[tuple[str, str], str] = {}
    dead = context.pipeline.dead_letters
    for name, sink in context.pipeline.sinks.items():
        kind = type(sink).KIND[0]
        if isinstance(sink, ParquetSink | DeltaSink | IcebergSink):
            place = (kind, str(getattr(sink, kind)).rstrip("/"))
            if place in places:
                message = f"{places[place]} writes there already"
                yield Problem(("sinks", name, kind), message, "give each its own place")
            places[place] = name
        if isinstance(sink, TopicSink):
            if dead is not None and dead.topic == sink.topic and dead.bootstrap == sink.bootstrap:
                yield Problem(("sinks", name, "topic"), f"{sink.topic} is the topic of the dead letters")
            for view in context.graph.upstream(sink.source):
                source = context.graph.definition(view)
                if not isinstance(source, TopicSource) or source.bootstrap != sink.bootstrap:
                    continue
                message = f"{view} reads {sink.topic}: the pipeline would read what it writes for ever"
                if sink.topic in source.names:
                    yield Problem(("sinks", name, "topic"), message)
                elif _has_pattern_of(source, sink.topic):
                    yield Problem(("sources", view, "pattern"), message, _NARROWER)
    for name, source in context.pipeline.sources.items():
        if not isinstance(source, TopicSource) or dead is None or source.bootstrap != dead.bootstrap:
            continue
        message = f"{dead.topic} is this pipeline's topic of dead letters: a bad record would come back"
        if dead.topic in source.names:
            yield Problem(("sources", name), message, "read it in a pipeline of its own", at_key=True)
        elif _has_pattern_of(source, dead.topic):
            yield Problem(("sources", name, "pattern"), message, _NARROWER)


def _has_pattern_of(source: TopicSource, topic: str) -> bool:
    try:
        return source.pattern is not None and matches(source.pattern, topic)
    except re.error:
        return False  # that is said already
