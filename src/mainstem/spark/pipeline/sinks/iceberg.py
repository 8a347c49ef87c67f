"""`iceberg`: an Iceberg table, written without a jar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from mainstem.spark.pipeline.checking.rules import CheckContext, needs_package
from mainstem.spark.pipeline.parts import Options, as_text
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.sinks import TableSink

if TYPE_CHECKING:
    from mainstem.spark.pipeline.places import Places

BATCH_PROPERTY = "mainstem.batch"


class IcebergSink(TableSink, frozen=True, kw_only=True):
    """An Iceberg table, exactly once by the batch number in its snapshots."""

    KIND: ClassVar[tuple[str, ...]] = ("iceberg",)

    iceberg: Annotated[str, Meta(description="the table with its namespace, such as `shop.orders`")]
    catalog: Annotated[
        Options, Meta(description="properties of pyiceberg's catalog; with none, its own configuration")
    ] = {}

    @property
    def place(self) -> str:
        return self.iceberg

    def describe(self) -> str:
        return f"iceberg {self.iceberg}"

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        yield from needs_package("pyiceberg", (*path, "iceberg"))
        if "." not in self.iceberg.strip("."):
            hint = f"write NAMESPACE.{self.iceberg}"
            yield Problem((*path, "iceberg"), f"{self.iceberg!r} has no namespace", hint)

    def write_rows(self, rows: Any, query_id: str, batch_id: int, places: Places) -> bool:
        """The batch's number is a property of the table."""
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchTableError

        properties = {key: value for key, value in as_text(self.catalog).items() if key != "name"}
        catalog = load_catalog(str(self.catalog.get("name", "default")), **properties)
        identifier = tuple(self.iceberg.split("."))
        try:
            table = catalog.load_table(identifier)
        except NoSuchTableError:
            catalog.create_namespace_if_not_exists(identifier[:-1])
            table = catalog.create_table_if_not_exists(identifier, schema=rows.schema)
        written = f"{BATCH_PROPERTY}.{query_id}"
        if int(table.properties.get(written, -1)) >= batch_id:
            return False
        # One commit: snapshots may be expired by others, the table's properties stay.
        with table.transaction() as transaction:
            transaction.append(rows, snapshot_properties={BATCH_PROPERTY: str(batch_id)})
            transaction.set_properties({written: str(batch_id)})
        return True
