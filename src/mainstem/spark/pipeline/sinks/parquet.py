"""`parquet`: files in a folder, which Spark writes by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from mainstem.spark.pipeline.checking.refusals import missing_columns, repeated_columns
from mainstem.spark.pipeline.parts import Options, as_text
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.sinks import Sink, WriteContext, counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class ParquetSink(Sink, frozen=True, kw_only=True):
    """Parquet files in a folder, exactly once by Spark's own log of the files."""

    KIND: ClassVar[tuple[str, ...]] = ("parquet",)

    parquet: Annotated[str, Meta(description="the folder")]
    partition_by: Annotated[list[str], Meta(description="columns that become folders")] = []
    options: Annotated[Options, Meta(description="options of Spark's Parquet writer")] = {}

    @property
    def place(self) -> str:
        return self.parquet.rstrip("/")

    def describe(self) -> str:
        return f"parquet {self.parquet}"

    def analyse(self, path: Path, frame: DataFrame, folder: FilePath) -> Iterator[Problem]:
        yield from missing_columns(frame, self.source, self.partition_by, (*path, "partition_by"))
        yield from repeated_columns(frame, self.source, path)

    def writer(self, view: DataFrame, context: WriteContext) -> DataStreamWriter:
        writer = counted(view).writeStream.format("parquet").options(**as_text(self.options))
        return writer.partitionBy(*self.partition_by).option("path", context.places.path(self.parquet))
