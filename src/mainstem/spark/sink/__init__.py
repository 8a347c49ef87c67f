"""Rows into topics: the two factories that the data source calls on the driver.

Importing this loads no Arrow and no compiled code: Spark imports it in a new process for every micro-batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mainstem.spark.sink.columns import check_columns
from mainstem.spark.sink.errors import SinkOptionError
from mainstem.spark.sink.options import parse

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter
    from pyspark.sql.types import StructType


def writer(schema: StructType, options: Mapping[str, str], overwrite: bool) -> DataSourceArrowWriter:
    """The writer of a batch write. All mistakes in options and columns are found here."""
    from mainstem.spark.sink.writers import AtLeastOnceWriter, TransactionalWriter

    if overwrite:
        raise SinkOptionError(
            'Save mode Overwrite not allowed for topics, which are only appended to: use mode("append")'
        )
    parsed = parse(options, streaming=False)
    columns = check_columns(schema, parsed.topic)
    return (TransactionalWriter if parsed.exactly_once else AtLeastOnceWriter)(parsed, columns)


def stream_writer(
    schema: StructType, options: Mapping[str, str], overwrite: bool
) -> DataSourceStreamArrowWriter:
    """The writer of one micro-batch. The output mode Complete (`overwrite`) appends the whole result each
    time, as with Spark's connector.
    """
    from mainstem.spark.sink.writers import AtLeastOnceStreamWriter, TransactionalStreamWriter

    parsed = parse(options, streaming=True)
    columns = check_columns(schema, parsed.topic)
    return (TransactionalStreamWriter if parsed.exactly_once else AtLeastOnceStreamWriter)(parsed, columns)
