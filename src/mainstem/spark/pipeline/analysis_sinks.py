"""Asks Spark about what sinks make of their views: expressions, columns, and the output mode. Nothing is
written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, NumericType, StructType

from mainstem.spark.pipeline import avro_fit, avro_schema, topic_output
from mainstem.spark.pipeline.checking.refusals import missing, refused
from mainstem.spark.pipeline.graph import Graph
from mainstem.spark.pipeline.model import DeltaSink, JdbcSink, ParquetSink, Sink, TopicSink
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.running.views import brief
from mainstem.spark.pipeline.schemas import ddl, definitions
from mainstem.spark.sink.columns import check_columns
from mainstem.spark.sink.errors import SinkSchemaError


def problems(
    spark: SparkSession,
    name: str,
    sink: Sink,
    view: str,
    frames: Mapping[str, DataFrame],
    graph: Graph,
    folder: FilePath,
) -> Iterator[Problem]:
    """Everything against one sink of a view that is fine itself."""
    path: Path = ("sinks", name)
    frame = frames[view]
    if isinstance(sink, TopicSink):
        yield from _topic(sink, path, frame, folder)
    for key in ("partition_by", "keys"):
        if isinstance(sink, ParquetSink | DeltaSink | JdbcSink):
            for index, column in enumerate(getattr(sink, key, ())):
                found = missing(frame, view, column, (*path, key, index))
                if found is not None:
                    yield found
    if isinstance(sink, ParquetSink | DeltaSink | JdbcSink):
        yield from _twice(frame, view, path)
    yield from _mode(spark, sink, path, view, frames, graph)


def _topic(sink: TopicSink, path: Path, frame: DataFrame, folder: FilePath) -> Iterator[Problem]:
    pieces: dict[Path, str] = {
        (*path, key): text
        for key in ("key", "value", "partition")
        if (text := getattr(sink, key)) is not None
    }
    pieces |= {(*path, "headers", header): text for header, text in sink.headers.items()}
    is_fine = True
    for where, text in pieces.items():
        for problem in _expression(frame, where, text):
            is_fine = False
            yield problem
    if not is_fine:
        return
    if sink.encode == "avro" and sink.value is None:
        misfits = list(_avro(sink, path, frame, folder))
        yield from misfits
        if misfits:
            return
    where = (*path, "encode")
    try:
        check_columns(topic_output.records(frame, sink, folder).schema, sink.topic)
    except PySparkException as error:
        yield refused(error, where)._replace(inside=None)
    except SinkSchemaError as error:
        yield Problem(where, str(error))


def _avro(sink: TopicSink, path: Path, frame: DataFrame, folder: FilePath) -> Iterator[Problem]:
    """What the schema does not take. A column that another part of the record is made of may be missing."""
    text = definitions.read_bytes(sink.schema_file or "", folder, "schema_file").decode()
    columns = _ddl_type(frame.schema).fields
    for misfit in avro_fit.misfits(columns, avro_schema.columns(text)):
        if misfit.extra is None or not _is_used(misfit.extra, sink, frame):
            yield Problem((*path, "schema_file"), misfit.message, misfit.hint)


def _ddl_type(kind: DataType) -> ddl.DataType:
    if isinstance(kind, StructType):
        fields = (ddl.Column(field.name, _ddl_type(field.dataType), field.nullable) for field in kind.fields)
        return ddl.DataType("struct", fields=tuple(fields))
    if isinstance(kind, ArrayType):
        return ddl.DataType("array", parts=(_ddl_type(kind.elementType),))
    if isinstance(kind, MapType):
        return ddl.DataType("map", parts=(_ddl_type(kind.keyType), _ddl_type(kind.valueType)))
    return ddl.DataType(kind.simpleString())


def _is_used(column: str, sink: TopicSink, frame: DataFrame) -> bool:
    """Whether the key, a header or the partition cannot be made without it."""
    without = frame.drop(column)
    for text in (sink.key, sink.partition, *sink.headers.values()):
        try:
            without.selectExpr(text or "1")
        except PySparkException:
            return True
    return False


def _expression(frame: DataFrame, path: Path, text: str) -> Iterator[Problem]:
    try:
        kind = frame.selectExpr(text).schema.fields[0].dataType
    except PySparkException as error:
        yield refused(error, path)
        return
    if path[-1] == "partition" and len(path) == 3 and not isinstance(kind, NumericType):
        hint = "for example pmod(hash(id), 4)"
        yield Problem(path, f"this is {kind.simpleString()}, not the number of a partition", hint)


def _twice(frame: DataFrame, view: str, path: Path) -> Iterator[Problem]:
    lowered = [column.lower() for column in frame.columns]
    again = sorted({column for column in frame.columns if lowered.count(column.lower()) > 1})
    if again:
        yield Problem((*path, "from"), f"{view} has more than one column {again[0]!r}", "name them apart")


def _mode(
    spark: SparkSession, sink: Sink, path: Path, view: str, frames: Mapping[str, DataFrame], graph: Graph
) -> Iterator[Problem]:
    """What a stream cannot do in an output mode, said of the first step that does it."""
    mode = getattr(sink, "mode", "append")
    said = _unsupported(spark, frames[view], mode)
    if said is None:
        return
    for step in graph.upstream(view):
        inputs = graph.inputs(step)
        if not inputs or _unsupported(spark, frames[step], mode) is None:
            continue
        streams = [other for other in inputs if graph.streams(other)]
        if mode != "complete" and all(_unsupported(spark, frames[other], mode) is None for other in streams):
            hint = f"{path[1]} writes it in {mode} mode"
            yield Problem(("steps", step), said, hint, at_key=True)
            return
    where = (*path, "mode") if hasattr(sink, "mode") else (*path, "from")
    yield Problem(where, said)


def _unsupported(spark: SparkSession, frame: DataFrame, mode: str) -> str | None:
    """What Spark would say when a query of this frame is started."""
    jvm = spark._jvm
    assert jvm is not None
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    wanted = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, mode.capitalize())()
    try:
        checker.checkForStreaming(frame._jdf.queryExecution().analyzed(), wanted)
    except PySparkException as error:
        return brief(error).rstrip(".")
    return None
