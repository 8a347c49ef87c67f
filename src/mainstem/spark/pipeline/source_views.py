"""Makes the DataFrame of a source: the records of topics, decoded, with the bad ones set aside.

Every row keeps its record and, if it is bad, the step at which it failed; the view shows the good rows, and
the query for dead letters takes the others from the same frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mainstem.spark.pipeline import times
from mainstem.spark.pipeline.arrow_functions import arrow_function
from mainstem.spark.pipeline.decoders import Decoder
from mainstem.spark.pipeline.diagnose import Diagnosis
from mainstem.spark.pipeline.model import FileSource, TopicSource, Watermark
from mainstem.spark.pipeline.option_text import as_text
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.schemas import ddl
from mainstem.spark.pipeline.schemas.definitions import Definition

RECORD = "__record"
FAILED = "__failed"
_DATA = "__data"
_CORRUPT = "__corrupt"
_ROWS = "__rows"
_RECORD_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")


class SourceFrame(NamedTuple):
    """The rows of a source: `staged` holds all of them with RECORD and FAILED, and REASON can be asked
    for."""

    name: str
    source: TopicSource
    definition: Definition
    staged: DataFrame

    @property
    def on_error(self) -> str | None:
        return self.source.on_error


def read_topics(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """The stream of records."""
    return spark.readStream.format("mainstem").options(**options).load()


def read_file(spark: SparkSession, source: FileSource, places: Places) -> DataFrame:
    """A table that does not stream."""
    ending = source.file.rpartition(".")[2].lower()
    kind = source.format or {"jsonl": "json", "txt": "text"}.get(ending, ending)
    options: dict[str, str] = {"header": "true"} if kind == "csv" else {}
    if source.schema is None and kind == "csv":
        options["inferSchema"] = "true"
    reader = spark.read.format(kind).options(**(options | as_text(source.options)))
    if source.schema is not None:
        reader = reader.schema(source.schema)
    return reader.load(places.path(source.file))


def stage(records: DataFrame, name: str, source: TopicSource, definition: Definition) -> SourceFrame:
    """Decode the records and mark the bad ones."""
    if source.tombstones == "drop":
        records = records.where(F.col("value").isNotNull())
    record = F.struct(*_RECORD_COLUMNS).alias(RECORD)
    if source.decode.format == "raw":
        staged = records.select("*", record, F.lit(None).cast("string").alias(FAILED))
        return SourceFrame(name, source, definition, staged)
    columns = definition.columns
    decoded = records.select(record, _decoded(F.col("value"), source, definition).alias(_DATA))
    # Where a row is to be decoded once only, what follows must not be pushed below it.
    row = _row(source)
    flat = [row.getField(column.name).alias(column.name) for column in columns]
    staged = decoded.select(*flat, RECORD, _failure(source, columns, row).alias(FAILED), F.col(_DATA))
    for rule, condition in source.require.items():
        holds = F.coalesce(F.expr(condition), F.lit(False))
        has_value = F.col(f"{RECORD}.value").isNotNull()
        broken = F.when(has_value & ~holds, F.lit(f"require.{rule}"))
        staged = staged.withColumn(FAILED, F.coalesce(F.col(FAILED), broken))
    return SourceFrame(name, source, definition, staged)


def _decoded(value: Column, source: TopicSource, definition: Definition) -> Column:
    decode = source.decode
    if decode.format in ("avro", "protobuf"):
        kind = f"row STRUCT<{', '.join(c.ddl(':') for c in _nullable(definition.columns))}>, reason STRING"
        decoded: Column = arrow_function(Decoder(decode, definition), kind).asNondeterministic()(value)
        return decoded
    columns = _nullable(definition.columns)
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT} | as_text(decode.options)
    if decode.framing == "confluent":
        value = F.substring(value, 6, 2**31 - 1)
    text = F.when(F.is_valid_utf8(value), value.cast("string")).otherwise(F.lit("\u0000"))
    # Never true: without it, the optimizer would parse every value twice, for the filter and for the columns.
    text = F.when(F.rand() < 0, F.lit("")).otherwise(text)
    if decode.format == "csv":
        # Quotes within quotes are doubled, as RFC 4180 has it; Spark would have a backslash before them.
        options = {"escape": options.get("quote", '"')} | options
        return F.from_csv(text, F.lit(f"{ddl.render(columns)}, {_CORRUPT} STRING"), options)
    return _from_json(text, columns, options)


def _from_json(text: Column, columns: ddl.Schema, options: dict[str, str]) -> Column:
    """Spark's parser looks at the first JSON value of a text, and not at what follows it. So it is given an
    array of the text and of null: what is more than one object leaves no array, or not these two in it.
    """
    element = ", ".join(column.ddl(":") for column in columns)
    schema = f"{_ROWS} ARRAY<STRUCT<{element}>>, {_CORRUPT} STRING"
    marked = F.concat(F.lit(f'{{"{_ROWS}":['), text, F.lit("\n,null]}"))
    return F.from_json(marked, schema, options)


def _row(source: TopicSource) -> Column:
    """The decoded row, null where there is none."""
    if source.decode.format == "json":
        return F.get(f"{_DATA}.{_ROWS}", F.lit(0))
    return F.col(_DATA if source.decode.format == "csv" else f"{_DATA}.row")


def _nullable(columns: ddl.Schema) -> ddl.Schema:
    """A value that lacks a column is a dead letter, not a failure of the batch: so every column may be
    null."""
    return tuple(ddl.Column(column.name, _nullable_type(column.type)) for column in columns)


def _nullable_type(kind: ddl.DataType) -> ddl.DataType:
    return ddl.DataType(kind.name, _nullable(kind.fields), tuple(_nullable_type(part) for part in kind.parts))


def _failure(source: TopicSource, columns: ddl.Schema, row: Column) -> Column:
    """`decode` where the value could not be decoded, or lacks a column that must be there."""
    has_value = F.col(f"{RECORD}.value").isNotNull()
    bad = row.isNull()
    if source.decode.format in ("json", "csv"):
        bad = bad | F.col(f"{_DATA}.{_CORRUPT}").isNotNull()
    if source.decode.format == "json":
        rows = F.col(f"{_DATA}.{_ROWS}")
        bad = bad | (F.size(rows) != 2) | F.get(rows, F.lit(1)).isNotNull()
    for part in _missing(row, columns):
        bad = bad | part
    return F.when(has_value & bad, F.lit("decode"))


def _missing(row: Column, columns: ddl.Schema) -> Iterator[Column]:
    """For each NOT NULL in the schema, at any depth: whether this row, which is there, lacks it."""
    for column in columns:
        value = row.getField(column.name)
        if not column.nullable:
            yield value.isNull()
        for part in _missing_within(value, column.type):
            yield value.isNotNull() & part


def _missing_within(value: Column, kind: ddl.DataType) -> Iterator[Column]:
    if kind.name == "struct":
        yield from _missing(value, kind.fields)
    elif kind.name in ("array", "map"):
        part = kind.parts[-1]
        items = value if kind.name == "array" else F.map_values(value)
        if _demands(part):
            yield F.exists(items, lambda item: item.isNotNull() & reduce(or_, _missing_within(item, part)))


def _demands(kind: ddl.DataType) -> bool:
    """Whether a value of this type has parts that must be there."""
    if any(not field.nullable or _demands(field.type) for field in kind.fields):
        return True
    return any(_demands(part) for part in kind.parts[-1:])


def good_rows(frame: SourceFrame, *, fail: bool) -> DataFrame:
    """The view of a source: its decoded columns and the facts asked for; bad rows left out, or an error."""
    source = frame.source
    staged = frame.staged
    if source.decode.format == "raw":
        return _watermarked(staged.drop(RECORD, FAILED, "timestampType"), source.watermark)
    if fail:
        message = F.concat(
            F.lit(f"a record for {frame.name} cannot be used: "),
            _reason(frame, briefly=True),
            F.format_string(
                " (topic %s, partition %d, offset %d)",
                F.col(f"{RECORD}.topic"),
                F.col(f"{RECORD}.partition"),
                F.col(f"{RECORD}.offset"),
            ),
        )
        is_good = F.when(F.col(FAILED).isNull(), F.lit(True)).otherwise(
            F.raise_error(message).cast("boolean")
        )
    else:
        is_good = F.col(FAILED).isNull()
    facts = [F.col(f"{RECORD}.{name}").alias(f"_{name}") for name in source.metadata]
    columns = [F.col(f"`{column.name}`") for column in frame.definition.columns]
    return _watermarked(staged.where(is_good).select(*columns, *facts), source.watermark)


def _watermarked(frame: DataFrame, watermark: Watermark | None) -> DataFrame:
    if watermark is None:
        return frame
    return frame.withWatermark(watermark.column, times.span(watermark.delay) or watermark.delay)


def bad_rows(frame: SourceFrame) -> DataFrame:
    """The records that are dead letters: their own columns, the step (`failed`) and the `reason`."""
    bad = frame.staged.where(F.col(FAILED).isNotNull())
    return bad.select(f"{RECORD}.*", F.col(FAILED).alias("failed"), _reason(frame).alias("reason"))


def _reason(frame: SourceFrame, *, briefly: bool = False) -> Column:
    """Why a row is bad. Briefly it is said in Spark's own words: a Python function would be called for good
    rows as well, wherever it stands in an expression."""
    decode = frame.source.decode
    value = F.col(f"{RECORD}.value")
    if decode.format in ("avro", "protobuf"):
        missing = [column.name for column in frame.definition.columns if not column.nullable]
        why: Column = F.coalesce(
            F.col(f"{_DATA}.reason"), F.lit(f"one of the columns {', '.join(missing)} is missing")
        )
    elif briefly:
        shown = F.substring(F.make_valid_utf8(value.cast("string")), 1, 200)
        why = F.concat(F.lit(f"not {decode.format.upper()} of its schema: "), shown)
    else:
        delimiter = str(decode.options.get("sep", decode.options.get("delimiter", ",")))
        diagnosis = Diagnosis(decode.format, frame.definition.columns, delimiter)
        if decode.framing == "confluent":
            value = F.substring(value, 6, 2**31 - 1)
        why = arrow_function(diagnosis, "string")(value)
    rules: Any = None
    for rule, condition in frame.source.require.items():
        when = F.when if rules is None else rules.when
        rules = when(F.col(FAILED) == f"require.{rule}", F.lit(f"the rule {rule} does not hold: {condition}"))
    decoding = F.when(F.col(FAILED) == "decode", why)
    return decoding if rules is None else F.coalesce(rules, decoding)
