"""Rows as records: the key, value and headers that a topic sink writes, and the records of dead letters."""

from __future__ import annotations

from pathlib import Path as FilePath

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType

from mainstem.spark.pipeline.arrow_functions import arrow_function
from mainstem.spark.pipeline.dead_letters.headers import (
    AT,
    OFFSET,
    PARTITION,
    PIPELINE,
    REASON,
    STEP,
    TIMESTAMP,
    TOPIC,
)
from mainstem.spark.pipeline.decoders import AvroEncoder
from mainstem.spark.pipeline.model import TopicSink
from mainstem.spark.pipeline.schemas import definitions

_RAW_COLUMNS = ("key", "value", "headers", "topic", "partition")


def records(view: DataFrame, sink: TopicSink, folder: FilePath) -> DataFrame:
    """The view as columns key, value, headers and partition, as far as they are wanted."""
    if sink.encode == "raw":
        return view.select(*(name for name in _RAW_COLUMNS if name in view.columns and name != "topic"))
    columns = [_bytes(view, F.expr(sink.key)).alias("key")] if sink.key is not None else []
    value = _bytes(view, F.expr(sink.value)) if sink.value is not None else _encoded(view, sink, folder)
    columns.append(value.alias("value"))
    if sink.headers:
        headers = [
            F.struct(F.lit(name).alias("key"), _bytes(view, F.expr(text)).cast("binary").alias("value"))
            for name, text in sink.headers.items()
        ]
        columns.append(F.array(*headers).alias("headers"))
    if sink.partition is not None:
        columns.append(F.expr(sink.partition).cast("int").alias("partition"))
    return view.select(*columns)


def _bytes(view: DataFrame, expression: Column) -> Column:
    """Text and bytes as they are, everything else as text."""
    kind = view.select(expression).schema.fields[0].dataType
    return expression if isinstance(kind, StringType | BinaryType) else expression.cast("string")


def _encoded(view: DataFrame, sink: TopicSink, folder: FilePath) -> Column:
    row = F.struct(*(F.col(f"`{name}`") for name in view.columns))
    if sink.encode == "csv":
        return F.to_csv(row)
    if sink.encode == "avro":
        text = definitions.read_bytes(sink.schema_file or "", folder, "schema_file").decode()
        encoded: Column = arrow_function(AvroEncoder(text), "binary")(row)
        return encoded
    return F.to_json(row)


def dead_letters(bad: DataFrame, pipeline: str, source: str) -> DataFrame:
    """Bad records as they were, with headers that say why, where and when."""
    told = {
        REASON: F.col("reason"),
        TOPIC: F.col("topic"),
        PARTITION: F.col("partition").cast("string"),
        OFFSET: F.col("offset").cast("string"),
        TIMESTAMP: F.unix_millis(F.col("timestamp")).cast("string"),
        PIPELINE: F.lit(pipeline),
        STEP: F.concat(F.lit(f"{source}."), F.col("failed")),
        AT: F.date_format(F.current_timestamp(), "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"),
    }
    headers = F.array(
        *(
            F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
            for name, value in told.items()
        )
    )
    own = F.coalesce(F.col("headers"), F.array().cast("array<struct<key:string,value:binary>>"))
    return bad.select("key", "value", F.concat(own, headers).alias("headers"))
