"""`delta`: a Delta table, written without a jar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta

from mainstem.spark.pipeline.checking.refusals import missing_columns, repeated_columns
from mainstem.spark.pipeline.checking.rules import CheckContext, needs_package
from mainstem.spark.pipeline.parts import Options, as_text
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.sinks import TableSink

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from pyspark.sql import DataFrame

    from mainstem.spark.pipeline.places import Places


class DeltaSink(TableSink, frozen=True, kw_only=True):
    """A Delta table, exactly once by the batch number in its log."""

    KIND: ClassVar[tuple[str, ...]] = ("delta",)

    delta: Annotated[str, Meta(description="the table's folder or address")]
    partition_by: Annotated[list[str], Meta(description="partition columns of a new table")] = []
    schema_change: Annotated[
        Literal["fail", "merge"], Meta(description="`merge` adds new columns to the table")
    ] = "fail"
    options: Annotated[Options, Meta(description="storage options of deltalake")] = {}

    @property
    def place(self) -> str:
        return self.delta.rstrip("/")

    def describe(self) -> str:
        return f"delta {self.delta}"

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        yield from needs_package("deltalake", (*path, "delta"))

    def analyse(self, path: Path, frame: DataFrame, folder: FilePath) -> Iterator[Problem]:
        yield from missing_columns(frame, self.source, self.partition_by, (*path, "partition_by"))
        yield from repeated_columns(frame, self.source, path)

    def write_rows(self, rows: Any, query_id: str, batch_id: int, places: Places) -> bool:
        """The batch's number is in Delta's log, as the transaction of an application."""
        from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

        storage = as_text(self.options) or None
        application = f"mainstem-{query_id}"
        path = places.path(self.delta)
        table: Any = path
        if DeltaTable.is_deltatable(path, storage):
            table = DeltaTable(path, storage_options=storage)
            written = table.transaction_version(application)
            if written is not None and written >= batch_id:
                return False
        write_deltalake(
            table,
            rows,
            mode="append",
            partition_by=self.partition_by or None,
            schema_mode="merge" if self.schema_change == "merge" else None,
            storage_options=storage,
            commit_properties=CommitProperties(app_transactions=[Transaction(application, batch_id)]),
        )
        return True
