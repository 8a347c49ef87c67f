"""What the DataFrame of a source or a step is built with. No Spark is imported here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, NamedTuple

from mainstem.spark.pipeline.problems import Path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mainstem.spark.pipeline.model import Pipeline
    from mainstem.spark.pipeline.places import Places
    from mainstem.spark.pipeline.schemas.definitions import Definition

# Makes a stream of records from the options of `format("mainstem")`.
ReadRecords = Callable[["SparkSession", Mapping[str, str]], "DataFrame"]


class BuildContext(NamedTuple):
    """One view that is to be built, and what there is to build it with."""

    spark: SparkSession
    path: Path  # sources.NAME or steps.NAME
    pipeline: Pipeline
    places: Places
    folder: FilePath
    inputs: Mapping[str, DataFrame]  # by lower-case name
    read_records: ReadRecords
    definition: Definition | None = None  # of what the records hold

    @property
    def name(self) -> str:
        return str(self.path[1])

    def view(self, name: str) -> DataFrame:
        """One of the views that are read."""
        return self.inputs[name.lower()]
