"""What a pipeline is made of: the classes that a YAML file is read into, and that a Python file builds
itself.

Every field is declared here once, with its type, default and meaning; the reader of files, the checks and the
reference in the documentation take it from here. No Spark here, and no behaviour.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

Scalar = str | int | float | bool
Options = dict[str, Scalar]
# "module:function", "file.py:function", or in a Python file the function itself.
Function = str | Callable[..., Any]

Format = Literal["json", "csv", "avro", "protobuf", "raw"]
OutputMode = Literal["append", "update", "complete"]
Metadata = Literal["key", "value", "topic", "partition", "offset", "timestamp", "headers"]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One mapping of a pipeline file. `SHORT` names the field that a bare value stands for; `KIND` the keys
    of which exactly one tells this part from the others that may stand in its place."""

    SHORT: ClassVar[str | None] = None
    KIND: ClassVar[tuple[str, ...]] = ()


class Decode(Part, frozen=True, kw_only=True):
    """How the bytes of a record's value become columns."""

    SHORT: ClassVar[str | None] = "format"

    format: Annotated[Format, Meta(description="the format of the values")] = "json"
    schema: Annotated[
        str | None,
        Meta(description="the columns: DDL such as `id BIGINT NOT NULL, name STRING`, or Avro's JSON"),
    ] = None
    schema_file: Annotated[
        str | None,
        Meta(description="a file with DDL, an Avro schema (.avsc), or a Protobuf descriptor set (.desc)"),
    ] = None
    message: Annotated[str | None, Meta(description="the Protobuf message, with its package")] = None
    infer: Annotated[
        int | None, Meta(description="infer the schema of JSON or CSV from this many records of the topic")
    ] = None
    framing: Annotated[
        Literal["none", "confluent"],
        Meta(description="`confluent`: skip the magic byte and schema id in front of each value"),
    ] = "none"
    options: Annotated[
        Options, Meta(description="options of Spark's JSON or CSV reader, such as `timestampFormat`")
    ] = {}


class Watermark(Part, frozen=True, kw_only=True):
    """How late a record may be by a column that holds its time."""

    column: Annotated[str, Meta(description="the column with the time of the event")]
    delay: Annotated[str, Meta(description="how late a record may come, such as `10 minutes`")]


class DeadLetters(Part, frozen=True, kw_only=True):
    """Where records go that cannot be decoded or break a rule."""

    SHORT: ClassVar[str | None] = "topic"

    topic: Annotated[str, Meta(description="the topic; it is created when it is missing")]
    bootstrap: Annotated[str | None, Meta(description="another cluster than the pipeline's")] = None


class TopicSource(Part, frozen=True, kw_only=True, rename={"start": "from"}):
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


class FileSource(Part, frozen=True, kw_only=True):
    """A table that does not stream, to join with."""

    KIND: ClassVar[tuple[str, ...]] = ("file",)

    file: Annotated[str, Meta(description="a file or folder that Spark reads")]
    format: Annotated[
        Literal["csv", "json", "parquet", "orc", "text"] | None,
        Meta(description="its format; by the name's ending otherwise"),
    ] = None
    schema: Annotated[str | None, Meta(description="the columns as DDL; inferred otherwise")] = None
    options: Annotated[Options, Meta(description="options of Spark's reader; CSV has `header` on")] = {}


class SqlStep(Part, frozen=True, kw_only=True):
    """A view that a SQL query defines over other views."""

    KIND: ClassVar[tuple[str, ...]] = ("sql", "sql_file")
    SHORT: ClassVar[str | None] = "sql"

    sql: Annotated[str | None, Meta(description="the query; views are its tables")] = None
    sql_file: Annotated[str | None, Meta(description="a file with the query")] = None


class PythonStep(Part, frozen=True, kw_only=True, rename={"inputs": "from", "arguments": "with"}):
    """A view that a Python function makes of other views."""

    KIND: ClassVar[tuple[str, ...]] = ("python",)

    python: Annotated[Function, Meta(description="`file.py:function` or `module:function`, on DataFrames")]
    inputs: Annotated[str | list[str], Meta(description="the views that the function is called with")]
    arguments: Annotated[dict[str, Any], Meta(description="keyword arguments for the function")] = {}


class WatermarkStep(Part, frozen=True, kw_only=True, rename={"source": "from"}):
    """The same view with a watermark."""

    KIND: ClassVar[tuple[str, ...]] = ("watermark",)

    watermark: Annotated[str, Meta(description="the column with the time of the event")]
    delay: Annotated[str, Meta(description="how late a row may come, such as `10 minutes`")]
    source: Annotated[str, Meta(description="the view")]


class DeduplicateStep(Part, frozen=True, kw_only=True, rename={"source": "from"}):
    """The first row of each key."""

    KIND: ClassVar[tuple[str, ...]] = ("deduplicate",)

    deduplicate: Annotated[list[str], Meta(description="the columns that make rows the same")]
    source: Annotated[str, Meta(description="the view")]
    within_watermark: Annotated[
        bool, Meta(description="forget keys when the watermark has passed them; the state stays small")
    ] = True


class Window(Part, frozen=True, kw_only=True):
    """Windows of time. Give `size` (and `slide`), or `gap` for sessions."""

    column: Annotated[str, Meta(description="the column with the time")]
    size: Annotated[str | None, Meta(description="how long a window is, such as `5 minutes`")] = None
    slide: Annotated[str | None, Meta(description="how far windows are apart, when they overlap")] = None
    gap: Annotated[str | None, Meta(description="a session ends when nothing comes for so long")] = None


class AggregateStep(Part, frozen=True, kw_only=True, rename={"source": "from"}):
    """One row per group and window, with `window_start` and `window_end` where there is a window."""

    KIND: ClassVar[tuple[str, ...]] = ("aggregate",)

    aggregate: Annotated[dict[str, str], Meta(description="new columns, each with its SQL expression")]
    source: Annotated[str, Meta(description="the view")]
    by: Annotated[list[str], Meta(description="columns to group by")] = []
    window: Annotated[Window | None, Meta(description="windows of time to group by")] = None


class JoinStep(Part, frozen=True, kw_only=True):
    """Two views joined; views of topics need watermarks and a condition on time to forget old rows."""

    KIND: ClassVar[tuple[str, ...]] = ("join",)

    join: Annotated[list[str], Meta(description="the two views: left, right")]
    on: Annotated[
        str | list[str],
        Meta(description="a SQL condition in which the views' names are aliases, or common columns"),
    ]
    type: Annotated[
        Literal["inner", "left", "right", "full", "left_semi", "left_anti"],
        Meta(description="the kind of join"),
    ] = "inner"
    select: Annotated[
        list[str] | None, Meta(description="the columns of the result, as SQL; all otherwise")
    ] = None


class StatefulStep(Part, frozen=True, kw_only=True, rename={"source": "from", "arguments": "with"}):
    """A processor of your own with state for each key (Spark's transformWithState)."""

    KIND: ClassVar[tuple[str, ...]] = ("stateful",)

    stateful: Annotated[Function, Meta(description="`file.py:Class`, a pyspark StatefulProcessor")]
    source: Annotated[str, Meta(description="the view")]
    by: Annotated[list[str], Meta(description="the columns that make the key")]
    schema: Annotated[str, Meta(description="the columns that it emits, as DDL")]
    mode: Annotated[OutputMode, Meta(description="the output mode")] = "append"
    time: Annotated[Literal["none", "processing", "event"], Meta(description="which time its timers use")] = (
        "none"
    )
    arguments: Annotated[dict[str, Any], Meta(description="keyword arguments for the class")] = {}


class SinkPart(Part, frozen=True, kw_only=True, rename={"source": "from"}):
    """What every sink has."""

    source: Annotated[str, Meta(description="the view to write")]
    trigger: Annotated[str | None, Meta(description="another trigger than the pipeline's")] = None


class TopicSink(SinkPart, frozen=True, kw_only=True):
    """Records into a topic, exactly once unless it is turned off."""

    KIND: ClassVar[tuple[str, ...]] = ("topic",)

    topic: Annotated[str, Meta(description="the topic; it is created when it is missing")]
    bootstrap: Annotated[str | None, Meta(description="another cluster than the pipeline's")] = None
    key: Annotated[str | None, Meta(description="a SQL expression for the key; none otherwise")] = None
    encode: Annotated[
        Literal["json", "csv", "avro", "raw"],
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


class ParquetSink(SinkPart, frozen=True, kw_only=True):
    """Parquet files in a folder, exactly once by Spark's own log of the files."""

    KIND: ClassVar[tuple[str, ...]] = ("parquet",)

    parquet: Annotated[str, Meta(description="the folder")]
    partition_by: Annotated[list[str], Meta(description="columns that become folders")] = []
    options: Annotated[Options, Meta(description="options of Spark's Parquet writer")] = {}


class DeltaSink(SinkPart, frozen=True, kw_only=True):
    """A Delta table, exactly once by the batch number in its log."""

    KIND: ClassVar[tuple[str, ...]] = ("delta",)

    delta: Annotated[str, Meta(description="the table's folder or address")]
    partition_by: Annotated[list[str], Meta(description="partition columns of a new table")] = []
    schema_change: Annotated[
        Literal["fail", "merge"], Meta(description="`merge` adds new columns to the table")
    ] = "fail"
    options: Annotated[Options, Meta(description="storage options of deltalake")] = {}


class IcebergSink(SinkPart, frozen=True, kw_only=True):
    """An Iceberg table, exactly once by the batch number in its snapshots."""

    KIND: ClassVar[tuple[str, ...]] = ("iceberg",)

    iceberg: Annotated[str, Meta(description="the table with its namespace, such as `shop.orders`")]
    catalog: Annotated[
        Options, Meta(description="properties of pyiceberg's catalog; with none, its own configuration")
    ] = {}


class JdbcSink(SinkPart, frozen=True, kw_only=True):
    """A table in a database, exactly once by the batch number in the same transaction."""

    KIND: ClassVar[tuple[str, ...]] = ("jdbc",)

    jdbc: Annotated[
        str, Meta(description="the address: `postgresql://user@host/db`, `sqlite:///file` or `jdbc:...`")
    ]
    table: Annotated[str, Meta(description="the table; it is created when it is missing")]
    keys: Annotated[list[str], Meta(description="columns of its key: rows replace those of their key")] = []
    mode: Annotated[OutputMode, Meta(description="the output mode; `update` needs keys")] = "append"
    driver: Annotated[
        str | None, Meta(description="a Python driver (DB-API module); by the address otherwise")
    ] = None
    jar: Annotated[str | None, Meta(description="a JDBC driver: Spark writes by itself, at least once")] = (
        None
    )
    options: Annotated[Options, Meta(description="options for the driver")] = {}


class ConsoleSink(SinkPart, frozen=True, kw_only=True):
    """Rows on the screen, to look at."""

    KIND: ClassVar[tuple[str, ...]] = ("console",)

    console: Annotated[int, Meta(description="how many rows of each batch")] = 20
    mode: Annotated[OutputMode, Meta(description="the output mode")] = "append"


class PythonSink(SinkPart, frozen=True, kw_only=True, rename={"source": "from", "arguments": "with"}):
    """A function of your own, called with each batch and its number."""

    KIND: ClassVar[tuple[str, ...]] = ("python",)

    python: Annotated[Function, Meta(description="`file.py:function`, called with (DataFrame, batch id)")]
    mode: Annotated[OutputMode, Meta(description="the output mode")] = "append"
    arguments: Annotated[dict[str, Any], Meta(description="keyword arguments for the function")] = {}


class Unread(Part, frozen=True, kw_only=True):
    """Stands for a part of a file that could not be read, so that what names it is not a mistake as well."""


Source = TopicSource | FileSource
Step = SqlStep | PythonStep | WatermarkStep | DeduplicateStep | AggregateStep | JoinStep | StatefulStep
Sink = TopicSink | ParquetSink | DeltaSink | IcebergSink | JdbcSink | ConsoleSink | PythonSink


class Pipeline(Part, frozen=True, kw_only=True, rename={"name": "pipeline"}):
    """A whole pipeline."""

    name: Annotated[str, Meta(description="its name: in status, metrics and dead letters")]
    sources: Annotated[dict[str, Source], Meta(description="the views that come from topics and files")] = {}
    sinks: Annotated[dict[str, Sink], Meta(description="where views are written")] = {}
    steps: Annotated[dict[str, Step], Meta(description="the views that are made of other views")] = {}
    bootstrap: Annotated[
        str | None, Meta(description="the cluster; MAINSTEM_BOOTSTRAP or `localhost:9092` otherwise")
    ] = None
    kafka: Annotated[
        Options, Meta(description="client settings for every topic, such as `security.protocol`")
    ] = {}
    dead_letters: Annotated[DeadLetters | None, Meta(description="where bad records go")] = None
    checkpoint: Annotated[
        str | None, Meta(description="the folder of its progress; in your state home otherwise")
    ] = None
    group: Annotated[
        str | None, Meta(description="the group that its offsets are committed to; its name otherwise")
    ] = None
    trigger: Annotated[
        str | None,
        Meta(description="`5 seconds` between batches, or `available now`; at once otherwise"),
    ] = None
    spark: Annotated[Options, Meta(description="Spark's configuration")] = {}
