"""Writes a batch into a Delta or Iceberg table exactly once, without a jar.

A batch that runs again after a failure keeps its number. The number stands in the table's own log, in the
same commit as the rows: Delta's transaction of an application, Iceberg's properties of the table. No Spark
here.
"""

from __future__ import annotations

from typing import Any

from mainstem.spark.pipeline.model import DeltaSink, IcebergSink
from mainstem.spark.pipeline.option_text import as_text

BATCH_PROPERTY = "mainstem.batch"


def write_delta(path: str, sink: DeltaSink, rows: Any, query_id: str, batch_id: int) -> bool:
    """Append an Arrow table; False when the batch is there already."""
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

    storage = as_text(sink.options) or None
    application = f"mainstem-{query_id}"
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
        partition_by=sink.partition_by or None,
        schema_mode="merge" if sink.schema_change == "merge" else None,
        storage_options=storage,
        commit_properties=CommitProperties(app_transactions=[Transaction(application, batch_id)]),
    )
    return True


def write_iceberg(sink: IcebergSink, rows: Any, query_id: str, batch_id: int) -> bool:
    """Append an Arrow table; False when the batch is there already."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchTableError

    properties = {key: value for key, value in as_text(sink.catalog).items() if key != "name"}
    catalog = load_catalog(str(sink.catalog.get("name", "default")), **properties)
    identifier = tuple(sink.iceberg.split("."))
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
