"""What every sink answers. A kind of sink is a module of this folder: a class made from Sink, BatchSink or
TableSink, with its KIND, its keys as fields, and how it is checked, described and written. Nothing else has
to know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from msgspec import Meta

from mainstem.spark.pipeline.kinds import kinds_in
from mainstem.spark.pipeline.parts import Part
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.spark_functions import F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from mainstem.spark.pipeline.model import Pipeline
    from mainstem.spark.pipeline.places import Places


class WriteContext(NamedTuple):
    """A sink that is to be started, and what it may need."""

    name: str
    pipeline: Pipeline
    places: Places
    folder: FilePath
    # Shows so many rows of a frame under a name.
    show: Callable[[str, DataFrame, int], None]
    # Told how many rows a batch has, where Spark does not count them: sink, batch, rows.
    wrote: Callable[[str, int, int], None]


class Sink(Part, frozen=True, kw_only=True, rename={"source": "from"}):
    """A view that is written somewhere."""

    source: Annotated[str, Meta(description="the view to write")]
    trigger: Annotated[str | None, Meta(description="another trigger than the pipeline's")] = None

    @property
    def output_mode(self) -> str:
        """A sink without the key `mode` only appends."""
        return str(getattr(self, "mode", "append"))

    @property
    def place(self) -> str | None:
        """What its first key names, where no other sink may write there."""
        return None

    def analyse(self, path: Path, frame: DataFrame, folder: FilePath) -> Iterator[Problem]:
        """What Spark has against what the sink makes of its view."""
        yield from ()

    def writer(self, view: DataFrame, context: WriteContext) -> DataStreamWriter:
        """What starts the query; its trigger and its checkpoint are not the sink's."""
        raise NotImplementedError


class BatchSink(Sink, frozen=True, kw_only=True):
    """A sink that the driver writes, batch by batch."""

    def writer(self, view: DataFrame, context: WriteContext) -> DataStreamWriter:
        def write(frame: DataFrame, batch_id: int) -> None:
            self.write_batch(frame, batch_id, context)

        return view.writeStream.outputMode(self.output_mode).foreachBatch(write)

    def write_batch(self, frame: DataFrame, batch_id: int, context: WriteContext) -> None:
        """Write a batch. One that runs again after a failure keeps its number."""
        raise NotImplementedError


class TableSink(BatchSink, frozen=True, kw_only=True):
    """A table to which a batch is written exactly once: its number stands in the table's own log, in the same
    commit as the rows."""

    def write_batch(self, frame: DataFrame, batch_id: int, context: WriteContext) -> None:
        query_id = frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        rows = frame.toArrow()
        if rows.num_rows:
            self.write_rows(rows, f"{query_id}", batch_id, context.places)
        context.wrote(context.name, batch_id, rows.num_rows)

    def write_rows(self, rows: Any, query_id: str, batch_id: int, places: Places) -> bool:
        """Append an Arrow table; False when the batch is there already."""
        raise NotImplementedError


def counted(frame: DataFrame) -> DataFrame:
    """The same, whose rows Spark counts."""
    from mainstem.spark.pipeline.metrics.progress import ROWS

    return frame.observe(ROWS, F.count(F.lit(1)).alias(ROWS))


_FIRST = ("topic", "parquet", "delta", "iceberg", "jdbc", "console", "python")
KINDS = kinds_in(__name__, __path__, Sink, first=_FIRST)
