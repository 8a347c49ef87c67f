"""A batch is written into a table exactly once, however often it runs."""

import sqlite3
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from mainstem.spark.pipeline import DeltaSink, IcebergSink, JdbcSink, database_table
from mainstem.spark.pipeline.addresses import AddressError, database, hidden
from mainstem.spark.pipeline.lake_tables import write_delta, write_iceberg

ROWS = pa.table({"id": [1, 2], "name": ["a", None]})


def test_delta_takes_each_batch_once(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    sink = DeltaSink(source="v", delta=path)
    assert write_delta(path, sink, ROWS, "query", 0)
    assert not write_delta(path, sink, ROWS, "query", 0)
    assert write_delta(path, sink, ROWS, "query", 1)
    assert write_delta(path, sink, ROWS, "another query", 0)
    assert DeltaTable(path).to_pyarrow_table().num_rows == 6


def test_delta_partitions_and_new_columns(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    wider = pa.table({"id": [3], "name": ["c"], "more": [1.5]})
    sink = DeltaSink(source="v", delta=path, partition_by=["name"])
    assert write_delta(path, sink, ROWS, "query", 0)
    assert DeltaTable(path).metadata().partition_columns == ["name"]
    with pytest.raises((DeltaError, ValueError)):
        write_delta(path, sink, wider, "query", 1)
    merging = DeltaSink(source="v", delta=path, partition_by=["name"], schema_change="merge")
    assert write_delta(path, merging, wider, "query", 1)
    assert DeltaTable(path).to_pyarrow_table().num_rows == 3


def test_iceberg_takes_each_batch_once(tmp_path: Path) -> None:
    catalog: dict[str, str | int | float | bool] = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}/house",
    }
    sink = IcebergSink(source="v", iceberg="shop.orders", catalog=catalog)
    assert write_iceberg(sink, ROWS, "query", 0)
    assert not write_iceberg(sink, ROWS, "query", 0)
    assert write_iceberg(sink, ROWS, "query", 1)
    assert write_iceberg(sink, ROWS, "another", 0)
    from pyiceberg.catalog import load_catalog

    properties = {key: str(value) for key, value in catalog.items()}
    table = load_catalog("default", **properties).load_table("shop.orders")
    assert table.scan().to_arrow().num_rows == 6


def _rows_of(path: Path, table: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(path) as connection:
        return connection.execute(f'SELECT * FROM "{table}" ORDER BY 1').fetchall()


def test_a_database_takes_each_batch_once(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    sink = JdbcSink(source="v", jdbc="sqlite:///shop.db", table="orders")
    for query, batch_id, written in (("q", 0, True), ("q", 0, False), ("q", 1, True), ("other", 0, True)):
        assert database_table.write_rows(sink, str(file), ROWS, query, batch_id) is written
    assert len(_rows_of(file, "orders")) == 6


def test_rows_replace_those_of_their_key(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    sink = JdbcSink(source="v", jdbc="sqlite:///shop.db", table="orders", keys=["id"], mode="update")
    database_table.write_rows(sink, str(file), ROWS, "q", 0)
    database_table.write_rows(sink, str(file), pa.table({"id": [2, 3], "name": ["b", "c"]}), "q", 1)
    assert _rows_of(file, "orders") == [(1, "a"), (2, "b"), (3, "c")]


def test_a_batch_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    sink = JdbcSink(source="v", jdbc="sqlite:///shop.db", table="orders", keys=["id"])
    database_table.write_rows(sink, str(file), ROWS, "q", 0)
    bad = pa.table({"id": [5, 6], "name": ["x", "y"], "no_such_column": [1, 2]})
    with pytest.raises(sqlite3.OperationalError):
        database_table.write_rows(sink, str(file), bad, "q", 1)
    assert len(_rows_of(file, "orders")) == 2
    assert _rows_of(file, database_table.BATCHES_TABLE) == [("q", 0)]
    with pytest.raises(ValueError, match=r"make a text of it with to_json\(s\)"):
        database_table.write_rows(
            JdbcSink(source="v", jdbc="sqlite:///shop.db", table="t"),
            str(file),
            pa.table({"s": [{"a": 1}]}),
            "q",
            2,
        )


@pytest.mark.parametrize(
    ("address", "driver", "host", "port", "name", "user"),
    [
        ("postgresql://ann:s3cret@db:5433/shop", "psycopg", "db", 5433, "shop", "ann"),
        ("jdbc:postgresql://db/shop?user=ann&password=s3cret", "psycopg", "db", None, "shop", "ann"),
        ("mysql://ann@db/shop", "pymysql", "db", None, "shop", "ann"),
        ("sqlite:///data/shop.db", "sqlite3", "", None, "data/shop.db", None),
        ("sqlite:////data/shop.db", "sqlite3", "", None, "/data/shop.db", None),
        ("jdbc:sqlite:shop.db", "sqlite3", "", None, "shop.db", None),
    ],
)
def test_addresses(
    address: str, driver: str, host: str, port: int | None, name: str, user: str | None
) -> None:
    found = database(address)
    assert (found.driver, found.host, found.port, found.name, found.user) == (driver, host, port, name, user)
    assert "s3cret" not in hidden(address)


def test_wrong_addresses() -> None:
    for address in ("nothing", "postgresql://", "postgresql://host", "oracle://h/d", "sqlite://"):
        with pytest.raises(AddressError):
            database(address)
    assert database("oracle://h/d", "oracledb").driver == "oracledb"


def test_decimals_and_times_have_columns() -> None:
    table = pa.table(
        {"d": pa.array([Decimal("1.50")], pa.decimal128(6, 2)), "t": pa.array([0], pa.timestamp("us", "UTC"))}
    )
    writer = database_table._Writer.__new__(database_table._Writer)
    writer._dialect = "postgresql"
    assert [writer._type(field.type, field.name) for field in table.schema] == [
        "NUMERIC(6, 2)",
        "TIMESTAMP WITH TIME ZONE",
    ]
