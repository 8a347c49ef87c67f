"""`topic`: records into a topic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from mainstem.spark.pipeline.brokers.connector_options import writer_options
from mainstem.spark.pipeline.checking.refusals import refused
from mainstem.spark.pipeline.checking.rules import CheckContext, bad_bootstrap, bad_topic
from mainstem.spark.pipeline.formats import ENCODINGS, FORMATS, Format
from mainstem.spark.pipeline.parts import Options, OutputMode, SqlPiece, as_text
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.sinks import Sink, WriteContext, counted
from mainstem.spark.pipeline.sources.topic import TopicSource
from mainstem.spark.pipeline.spark_functions import F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from mainstem.spark.pipeline.model import Pipeline
    from mainstem.spark.pipeline.places import Places

    Encoding = str
else:
    Encoding = Literal[ENCODINGS]

# Options of the connector that have a key of their own here.
OWN_KEYS = {
    "topic": "topic",
    "exactlyonce": "exactly_once",
    "checkpointlocation": "checkpoint at the top",
    "kafka.bootstrap.servers": "bootstrap",
}
_RAW_COLUMNS = ("key", "value", "headers", "partition")


class TopicSink(Sink, frozen=True, kw_only=True):
    """Records into a topic, exactly once unless it is turned off."""

    KIND: ClassVar[tuple[str, ...]] = ("topic",)

    topic: Annotated[str, Meta(description="the topic; it is created when it is missing")]
    bootstrap: Annotated[str | None, Meta(description="another cluster than the pipeline's")] = None
    key: Annotated[str | None, Meta(description="a SQL expression for the key; none otherwise")] = None
    encode: Annotated[
        Encoding,
        Meta(
            description="how columns become the value; `raw` writes columns key, value, headers as they are"
        ),
    ] = "json"
    schema_file: Annotated[str | None, Meta(description="the Avro schema to write with")] = None
    value: Annotated[str | None, Meta(description="a SQL expression for the value instead")] = None
    headers: Annotated[dict[str, str], Meta(description="headers, each with a SQL expression")] = {}
    partition: Annotated[str | None, Meta(description="a SQL expression for the partition")] = None
    mode: Annotated[OutputMode, Meta(description="the output mode")] = "append"
    exactly_once: Annotated[bool, Meta(description="one transaction for each batch")] = True
    options: Annotated[Options, Meta(description='further options of `format("mainstem")`')] = {}

    @property
    def codec(self) -> Format:
        return FORMATS[self.encode]

    def describe(self) -> str:
        return f"topic {self.topic}, {self.encode}, {'exactly' if self.exactly_once else 'at least'} once"

    def sql_pieces(self, path: Path, folder: FilePath) -> Iterator[SqlPiece]:
        for key in ("key", "value", "partition"):
            if getattr(self, key) is not None:
                yield SqlPiece((*path, key), getattr(self, key))
        for header, expression in self.headers.items():
            yield SqlPiece((*path, "headers", header), expression)

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        yield from bad_topic(self.topic, (*path, "topic"))
        yield from bad_bootstrap(self.bootstrap, (*path, "bootstrap"))
        yield from self.codec.check_encoding(self, path, context.folder)
        here = (*path, "topic")
        dead = context.pipeline.dead_letters
        if dead is not None and dead.topic == self.topic and dead.bootstrap == self.bootstrap:
            yield Problem(here, f"{self.topic} is the topic of the dead letters")
        for view in context.graph.upstream(self.source):
            source = context.graph.definition(view)
            if isinstance(source, TopicSource):
                message = f"{view} reads {self.topic}: the pipeline would read what it writes for ever"
                yield from source.check_loop(self.topic, self.bootstrap, ("sources", view), message, here)

    def options_of(self, pipeline: Pipeline, places: Places, checkpoint: str) -> dict[str, str]:
        """The options of `format("mainstem")`."""
        options = writer_options(
            pipeline,
            self.topic,
            self.bootstrap,
            places,
            exactly_once=self.exactly_once,
            checkpoint=checkpoint,
        )
        return options | as_text(self.options)

    def writer(self, view: DataFrame, context: WriteContext) -> DataStreamWriter:
        checkpoint = context.places.checkpoint_of(context.name)
        options = self.options_of(context.pipeline, context.places, checkpoint)
        writer = counted(self.records(view, context.folder)).writeStream.format("mainstem")
        return writer.outputMode(self.mode).options(**options)

    def records(self, view: DataFrame, folder: FilePath) -> DataFrame:
        """The view as columns key, value, headers and partition, as far as they are wanted."""
        if not self.codec.DECODES:
            return view.select(*(name for name in _RAW_COLUMNS if name in view.columns))
        columns = [_bytes(view, self.key).alias("key")] if self.key is not None else []
        if self.value is not None:
            value = _bytes(view, self.value)
        else:
            row = F.struct(*(F.col(f"`{name}`") for name in view.columns))
            value = self.codec.encoded(row, self, folder)
        columns.append(value.alias("value"))
        if self.headers:
            headers = [
                F.struct(F.lit(name).alias("key"), _bytes(view, text).cast("binary").alias("value"))
                for name, text in self.headers.items()
            ]
            columns.append(F.array(*headers).alias("headers"))
        if self.partition is not None:
            columns.append(F.expr(self.partition).cast("int").alias("partition"))
        return view.select(*columns)

    def analyse(self, path: Path, frame: DataFrame, folder: FilePath) -> Iterator[Problem]:
        from pyspark.errors import PySparkException

        from mainstem.spark.sink.columns import check_columns
        from mainstem.spark.sink.errors import SinkSchemaError

        found = [problem for piece in self.sql_pieces(path, folder) for problem in _refused(frame, piece)]
        if not found and self.value is None:
            found = list(self.codec.misfits(self, path, frame, folder))
        yield from found
        if found:
            return
        where = (*path, "encode")
        try:
            check_columns(self.records(frame, folder).schema, self.topic)
        except PySparkException as error:
            yield refused(error, where)._replace(inside=None)
        except SinkSchemaError as error:
            yield Problem(where, str(error))

    def needs(self, column: str, frame: DataFrame) -> bool:
        """Whether the key, a header or the partition cannot be made without it."""
        from pyspark.errors import PySparkException

        without = frame.drop(column)
        for text in (self.key, self.partition, *self.headers.values()):
            try:
                without.selectExpr(text or "1")
            except PySparkException:
                return True
        return False


def _refused(frame: DataFrame, piece: SqlPiece) -> Iterator[Problem]:
    from pyspark.errors import PySparkException
    from pyspark.sql.types import NumericType

    path = piece.path
    try:
        kind = frame.selectExpr(piece.text).schema.fields[0].dataType
    except PySparkException as error:
        yield refused(error, path)
        return
    if path[2:] == ("partition",) and not isinstance(kind, NumericType):
        hint = "for example pmod(hash(id), 4)"
        yield Problem(path, f"this is {kind.simpleString()}, not the number of a partition", hint)


def _bytes(view: DataFrame, text: str) -> Column:
    """Text and bytes as they are, everything else as text."""
    from pyspark.sql.types import BinaryType, StringType

    expression = F.expr(text)
    kind = view.select(expression).schema.fields[0].dataType
    return expression if isinstance(kind, StringType | BinaryType) else expression.cast("string")
