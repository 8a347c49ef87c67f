"""`format("mainstem")`: the object that Spark makes of the options, and what it makes in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceStreamArrowWriter
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from mainstem.spark.source.errors import OptionError
from mainstem.spark.source.options import Kind, ReadOptions, check_general, parse_options

if TYPE_CHECKING:
    from mainstem.spark.source.readers import BatchReader
    from mainstem.spark.source.stream_reader import RefusingStreamReader, StreamReader

_COLUMNS = [
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
]
_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])


def record_schema(*, headers: bool) -> StructType:
    """The columns of records. Made of types, not of text: Spark's Python workers cannot parse one."""
    return StructType([*_COLUMNS, *([StructField("headers", ArrayType(_HEADER))] if headers else [])])


class MainstemDataSource(DataSource):
    """Topics of a Kafka-compatible cluster, with the schema and the options of Spark's own connector."""

    @classmethod
    def name(cls) -> str:
        return "mainstem"

    def schema(self) -> StructType:
        # Called by `load()`: what is wrong for a batch and for a stream alike is found here already.
        return record_schema(headers=check_general(self.options).include_headers)

    def reader(self, schema: StructType) -> BatchReader:
        from mainstem.spark.source.readers import BatchReader, FilteringBatchReader

        options = self._read_options(schema, "batch")
        return FilteringBatchReader(options) if options.filter_pushdown else BatchReader(options)

    def streamReader(self, schema: StructType) -> StreamReader | RefusingStreamReader:
        from mainstem.spark.source.stream_reader import RefusingStreamReader, StreamReader

        try:
            return StreamReader(self._read_options(schema, "stream"))
        except OptionError as error:
            return RefusingStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from mainstem.spark.sink import writer

        return writer(schema, self.options, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        from mainstem.spark.sink import stream_writer

        return stream_writer(schema, self.options, overwrite)

    def _read_options(self, schema: StructType, kind: Kind) -> ReadOptions:
        options = parse_options(self.options, kind)
        if schema != self.schema():
            raise OptionError("the schema of a topic is fixed: leave schema() out, and select what you need")
        return options
