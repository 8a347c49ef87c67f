"""`topic`, `topics` or `pattern`: the records of topics, decoded, with the bad ones set aside.

Every row keeps its record and, if it is bad, the step at which it failed; the view shows the good rows, and
the query for dead letters takes the others from the same frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
from msgspec import Meta

from mainstem.spark.pipeline import times
from mainstem.spark.pipeline.brokers.connector_options import client_options
from mainstem.spark.pipeline.checking.refusals import refused, refused_piece
from mainstem.spark.pipeline.checking.rules import CheckContext, bad_bootstrap, bad_span, bad_topic
from mainstem.spark.pipeline.formats import DATA, RECORD
from mainstem.spark.pipeline.parts import Options, Part, SqlPiece, as_text
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.schemas.ddl import DataType, Schema
from mainstem.spark.pipeline.schemas.definitions import Definition
from mainstem.spark.pipeline.sources import Source, SourceFrames
from mainstem.spark.pipeline.sources.decode import Decode
from mainstem.spark.pipeline.spark_functions import F
from mainstem.spark.source.patterns import matches

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from pyspark.sql import Column, DataFrame

    from mainstem.spark.pipeline.model import Pipeline
    from mainstem.spark.pipeline.places import Places
    from mainstem.spark.pipeline.running.context import BuildContext

Metadata = Literal["key", "value", "topic", "partition", "offset", "timestamp", "headers"]
# Options of the connector that have a key of their own here.
OWN_KEYS = {
    "subscribe": "topic or topics",
    "subscribepattern": "pattern",
    "startingoffsets": "from",
    "startingtimestamp": "from",
    "maxoffsetspertrigger": "rate",
    "failondataloss": "fail_on_data_loss",
    "kafka.bootstrap.servers": "bootstrap",
    "includeheaders": "metadata: [headers]",
}
_NARROWER = "a pattern is searched for anywhere in a name: let ^ and $ bound it"
_RECORD_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
_FAILED = "__failed"


class Watermark(Part, frozen=True, kw_only=True):
    """How late a record may be by a column that holds its time."""

    column: Annotated[str, Meta(description="the column with the time of the event")]
    delay: Annotated[str, Meta(description="how late a record may come, such as `10 minutes`")]

    def applied(self, frame: DataFrame) -> DataFrame:
        return frame.withWatermark(self.column, times.span(self.delay) or self.delay)


class TopicSource(Source, frozen=True, kw_only=True, rename={"start": "from"}):
    """A view of one or more topics."""

    KIND: ClassVar[tuple[str, ...]] = ("topic", "topics", "pattern")

    topic: Annotated[str | None, Meta(description="the topic to read")] = None
    topics: Annotated[list[str] | None, Meta(description="several topics, read as one view")] = None
    pattern: Annotated[str | None, Meta(description="every topic whose name matches, also later ones")] = None
    bootstrap: Annotated[str | None, Meta(description="another cluster than the pipeline's")] = None
    start: Annotated[
        str,
        Meta(
            description="where the first run starts: `earliest`, `latest` or a time, `2026-01-31T12:00:00Z`"
        ),
    ] = "earliest"
    rate: Annotated[int | None, Meta(description="at most this many records in one batch")] = None
    decode: Annotated[Decode, Meta(description="how values become columns")] = Decode(format="raw")
    metadata: Annotated[
        list[Metadata],
        Meta(description="facts of the record to add as columns `_key`, `_topic`, `_offset` and so on"),
    ] = []
    require: Annotated[
        dict[str, str],
        Meta(description="rules by name, as SQL conditions; a record that breaks one is a dead letter"),
    ] = {}
    tombstones: Annotated[
        Literal["keep", "drop"],
        Meta(description="records without a value: keep them as rows of NULLs, or drop them"),
    ] = "keep"
    on_error: Annotated[
        Literal["dead_letter", "fail", "drop"] | None,
        Meta(
            description="what becomes of a bad record; `dead_letter` when there is such a topic, else `fail`"
        ),
    ] = None
    watermark: Annotated[Watermark | None, Meta(description="event time and lateness")] = None
    fail_on_data_loss: Annotated[
        bool, Meta(description="stop when offsets have aged out, instead of going on behind the gap")
    ] = True
    options: Annotated[Options, Meta(description='further options of `format("mainstem")`')] = {}

    @property
    def names(self) -> list[str]:
        """The topics that it names; none where it has a pattern."""
        return [*([self.topic] if self.topic is not None else []), *(self.topics or ())]

    def reads(self, topic: str) -> bool:
        return topic in self.names or self._has_pattern_of(topic)

    def _has_pattern_of(self, topic: str) -> bool:
        try:
            return self.pattern is not None and matches(self.pattern, topic)
        except re.error:
            return False  # that is said already

    @property
    def is_stream(self) -> bool:
        return True

    @property
    def has_watermark(self) -> bool:
        return self.watermark is not None

    def error_policy(self, pipeline: Pipeline) -> str:
        """What becomes of a bad record: `dead_letter`, `fail` or `drop`."""
        return self.on_error or ("dead_letter" if pipeline.dead_letters is not None else "fail")

    def describe(self) -> str:
        if self.pattern is not None:
            what = f"topics like {self.pattern}"
        else:
            what = f"topic{'s' if len(self.names) > 1 else ''} {', '.join(self.names)}"
        words = [what, self.decode.format]
        if self.rate is not None:
            words.append(f"at most {self.rate} a batch")
        if self.watermark is not None:
            words.append(f"watermark {self.watermark.column}, {times.span(self.watermark.delay)} late")
        words += [f"requires {rule}" for rule in self.require]
        return ", ".join(words)

    def sql_pieces(self, path: Path, folder: FilePath) -> Iterator[SqlPiece]:
        for rule, condition in self.require.items():
            yield SqlPiece((*path, "require", rule), condition)

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        yield from self._check_topics(path)
        yield from bad_bootstrap(self.bootstrap, (*path, "bootstrap"))
        if not self.has_start:
            hint = "use earliest, latest or a time such as 2026-01-31T12:00:00Z"
            yield Problem((*path, "from"), f"{self.start!r} is no place to start", hint)
        if self.rate is not None and self.rate < 1:
            yield Problem((*path, "rate"), "at least one record must be read in a batch")
        if self.on_error == "dead_letter" and context.pipeline.dead_letters is None:
            hint = "add dead_letters: TOPIC at the top"
            yield Problem((*path, "on_error"), "there is no topic for dead letters", hint)
        yield from self.decode.check((*path, "decode"), context)
        if self.require and not self.decode.codec.DECODES:
            hint = "add decode with a format and a schema"
            yield Problem((*path, "require"), "rules need decoded values", hint)
        for index, name in enumerate(self.metadata):
            if name in self.metadata[:index]:
                yield Problem((*path, "metadata", index), f"{name} is there twice")
        if self.watermark is not None:
            yield from bad_span(self.watermark.delay, (*path, "watermark", "delay"))
        dead_letters = context.pipeline.dead_letters
        if dead_letters is not None:
            message = (
                f"{dead_letters.topic} is this pipeline's topic of dead letters: a bad record would come back"
            )
            hint = "read it in a pipeline of its own"
            yield from self.check_loop(dead_letters.topic, dead_letters.bootstrap, path, message, path, hint)

    @property
    def has_start(self) -> bool:
        """Whether it says where to start."""
        return self.start in ("earliest", "latest") or times.point_ms(self.start) is not None

    def _check_topics(self, path: Path) -> Iterator[Problem]:
        given = [name for name in self.KIND if getattr(self, name) is not None]
        if len(given) > 1:
            yield Problem((*path, given[1]), f"{' and '.join(given)} exclude each other", at_key=True)
        if self.topic is not None:
            yield from bad_topic(self.topic, (*path, "topic"))
        for index, topic in enumerate(self.topics or ()):
            yield from bad_topic(topic, (*path, "topics", index))
        if self.topics == []:
            yield Problem((*path, "topics"), "the list is empty")
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as error:
                yield Problem((*path, "pattern"), f"this is no regular expression: {error}")

    def check_loop(
        self,
        topic: str,
        bootstrap: str | None,
        path: Path,
        message: str,
        named: Path,
        hint: str | None = None,
    ) -> Iterator[Problem]:
        """What the pipeline writes to that topic would be read here. It is said at `named` where the topic is
        named, otherwise at this source's pattern; `path` leads to this source."""
        if self.bootstrap != bootstrap:
            return
        if topic in self.names:
            yield Problem(named, message, hint, at_key=named == path)
        elif self._has_pattern_of(topic):
            yield Problem((*path, "pattern"), message, _NARROWER)

    def reader_options(self, pipeline: Pipeline, places: Places) -> dict[str, str]:
        """The options of `format("mainstem")`."""
        # What an aborted transaction left, such as a batch that another pipeline ran again, is no data.
        options = {"kafka.isolation.level": "read_committed"}
        options |= client_options(pipeline)
        options["kafka.bootstrap.servers"] = places.bootstrap(self.bootstrap)
        if self.pattern is not None:
            options["subscribePattern"] = self.pattern
        else:
            options["subscribe"] = ",".join(self.names)
        if self.start in ("earliest", "latest"):
            options["startingOffsets"] = self.start
        else:
            options["startingTimestamp"] = str(times.point_ms(self.start))
            # Where no record is that young, the first run starts at the end.
            options["startingOffsetsByTimestampStrategy"] = "latest"
        if self.rate is not None:
            options["maxOffsetsPerTrigger"] = str(self.rate)
        options["failOnDataLoss"] = str(self.fail_on_data_loss).lower()
        options["includeHeaders"] = "true"
        return options | as_text(self.options)

    def read(self, context: BuildContext) -> SourceFrames:
        assert context.definition is not None
        records = context.read_records(context.spark, self.reader_options(context.pipeline, context.places))
        rows = Rows.staged(records, context.name, self, context.definition)
        policy = self.error_policy(context.pipeline)
        has_dead_letters = self.decode.codec.DECODES and policy == "dead_letter"
        return SourceFrames(rows.good(fail=policy == "fail"), rows.bad if has_dead_letters else None)

    def analyse(self, context: BuildContext, *, is_refused: bool) -> Iterator[Problem]:
        """What Spark has against the rules and the watermark."""
        from pyspark.errors import PySparkException

        if not self.require and not is_refused:
            return
        assert context.definition is not None
        bare = msgspec.structs.replace(self, require={}, watermark=None)
        try:
            rows = Rows.staged(
                context.read_records(context.spark, {}), context.name, bare, context.definition
            )
            view = rows.good(fail=False)
        except PySparkException:
            return  # it is neither of them
        for rule, condition in self.require.items():
            path = (*context.path, "require", rule)
            try:
                kind = rows.frame.selectExpr(condition).schema.fields[0].dataType.simpleString()
            except PySparkException as error:
                yield refused(error, path)
                continue
            if kind != "boolean":
                hint = "compare it, so that it is true or false"
                yield Problem(path, f"this is {kind}, not a condition", hint)
        watermark = self.watermark
        if watermark is not None:
            where = (*context.path, "watermark", "column")
            yield from refused_piece(lambda: watermark.applied(view), where)


class Rows(NamedTuple):
    """The rows of a source, good and bad ones, with RECORD and where it failed."""

    name: str
    source: TopicSource
    columns: Schema
    frame: DataFrame

    @classmethod
    def staged(cls, records: DataFrame, name: str, source: TopicSource, definition: Definition) -> Rows:
        """Decode the records and mark the bad ones."""
        if source.tombstones == "drop":
            records = records.where(F.col("value").isNotNull())
        record = F.struct(*_RECORD_COLUMNS).alias(RECORD)
        codec = source.decode.codec
        columns = definition.columns
        if not codec.DECODES:
            frame = records.select("*", record, F.lit(None).cast("string").alias(_FAILED))
            return cls(name, source, columns, frame)
        decoded = records.select(record, codec.decoded(F.col("value"), source.decode, definition).alias(DATA))
        row = codec.row()
        has_value = F.col(f"{RECORD}.value").isNotNull()
        bad = reduce(or_, _missing(row, columns), codec.is_bad())
        flat = [row.getField(column.name).alias(column.name) for column in columns]
        failed = F.when(has_value & bad, F.lit("decode")).alias(_FAILED)
        frame = decoded.select(*flat, RECORD, failed, F.col(DATA))
        for rule, condition in source.require.items():
            holds = F.coalesce(F.expr(condition), F.lit(False))
            broken = F.when(has_value & ~holds, F.lit(f"require.{rule}"))
            frame = frame.withColumn(_FAILED, F.coalesce(F.col(_FAILED), broken))
        return cls(name, source, columns, frame)

    def good(self, *, fail: bool) -> DataFrame:
        """The view: its decoded columns and the facts asked for; bad rows left out, or an error."""
        view = self._good(fail=fail)
        return view if self.source.watermark is None else self.source.watermark.applied(view)

    def _good(self, *, fail: bool) -> DataFrame:
        if not self.source.decode.codec.DECODES:
            return self.frame.drop(RECORD, _FAILED, "timestampType")
        is_good = F.col(_FAILED).isNull()
        if fail:
            message = F.concat(
                F.lit(f"a record for {self.name} cannot be used: "),
                self._reason(briefly=True),
                F.format_string(
                    " (topic %s, partition %d, offset %d)",
                    F.col(f"{RECORD}.topic"),
                    F.col(f"{RECORD}.partition"),
                    F.col(f"{RECORD}.offset"),
                ),
            )
            is_good = F.when(is_good, F.lit(True)).otherwise(F.raise_error(message).cast("boolean"))
        facts = [F.col(f"{RECORD}.{name}").alias(f"_{name}") for name in self.source.metadata]
        columns = [F.col(f"`{column.name}`") for column in self.columns]
        return self.frame.where(is_good).select(*columns, *facts)

    def bad(self) -> DataFrame:
        """The records that are dead letters: their own columns, the step (`failed`) and the `reason`."""
        bad = self.frame.where(F.col(_FAILED).isNotNull())
        return bad.select(f"{RECORD}.*", F.col(_FAILED).alias("failed"), self._reason().alias("reason"))

    def _reason(self, *, briefly: bool = False) -> Column:
        """Why a row is bad."""
        decode = self.source.decode
        why = decode.codec.reason(F.col(f"{RECORD}.value"), decode, self.columns, briefly=briefly)
        rules: Any = None
        for rule, condition in self.source.require.items():
            when = F.when if rules is None else rules.when
            said = F.lit(f"the rule {rule} does not hold: {condition}")
            rules = when(F.col(_FAILED) == f"require.{rule}", said)
        decoding = F.when(F.col(_FAILED) == "decode", why)
        return decoding if rules is None else F.coalesce(rules, decoding)


def _missing(row: Column, columns: Schema) -> Iterator[Column]:
    """For each NOT NULL in the schema, at any depth: whether this row, which is there, lacks it."""
    for column in columns:
        value = row.getField(column.name)
        if not column.nullable:
            yield value.isNull()
        for part in _missing_within(value, column.type):
            yield value.isNotNull() & part


def _missing_within(value: Column, kind: DataType) -> Iterator[Column]:
    if kind.name == "struct":
        yield from _missing(value, kind.fields)
    elif kind.name in ("array", "map"):
        part = kind.parts[-1]
        items = value if kind.name == "array" else F.map_values(value)
        if part.has_required_parts:
            yield F.exists(items, lambda item: item.isNotNull() & reduce(or_, _missing_within(item, part)))
