"""A batch is written into a database exactly once, however often it runs; addresses of databases are read."""

import sqlite3
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from mainstem.spark.pipeline import JdbcSink, Pipeline
from mainstem.spark.pipeline.places import Places
from mainstem.spark.pipeline.sinks import jdbc
from mainstem.spark.pipeline.sinks.jdbc import AddressError, database, hidden
from tests.spark.pipeline.mistakes import base_with, mistakes

ROWS = pa.table({"id": [1, 2], "name": ["a", None]})


def places(folder: Path) -> Places:
    return Places(Pipeline(name="p"), folder)


def _rows_of(path: Path, table: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(path) as connection:
        return connection.execute(f'SELECT * FROM "{table}" ORDER BY 1').fetchall()


def test_a_database_takes_each_batch_once(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    sink = JdbcSink(source="v", jdbc="sqlite:///shop.db", table="orders")
    for query, batch_id, written in (("q", 0, True), ("q", 0, False), ("q", 1, True), ("other", 0, True)):
        assert sink.write_rows(ROWS, query, batch_id, places(tmp_path)) is written
    assert len(_rows_of(file, "orders")) == 6


def test_rows_replace_those_of_their_key(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    sink = JdbcSink(source="v", jdbc="sqlite:///shop.db", table="orders", keys=["id"], mode="update")
    sink.write_rows(ROWS, "q", 0, places(tmp_path))
    sink.write_rows(pa.table({"id": [2, 3], "name": ["b", "c"]}), "q", 1, places(tmp_path))
    assert _rows_of(file, "orders") == [(1, "a"), (2, "b"), (3, "c")]


def test_a_batch_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    sink = JdbcSink(source="v", jdbc="sqlite:///shop.db", table="orders", keys=["id"])
    sink.write_rows(ROWS, "q", 0, places(tmp_path))
    bad = pa.table({"id": [5, 6], "name": ["x", "y"], "no_such_column": [1, 2]})
    with pytest.raises(sqlite3.OperationalError):
        sink.write_rows(bad, "q", 1, places(tmp_path))
    assert len(_rows_of(file, "orders")) == 2
    assert _rows_of(file, jdbc.BATCHES_TABLE) == [("q", 0)]
    other = JdbcSink(source="v", jdbc="sqlite:///shop.db", table="t")
    with pytest.raises(ValueError, match=r"make a text of it with to_json\(s\)"):
        other.write_rows(pa.table({"s": [{"a": 1}]}), "q", 2, places(tmp_path))


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
    writer = jdbc._Writer.__new__(jdbc._Writer)
    writer._dialect = "postgresql"
    assert [writer._type(field.type, field.name) for field in table.schema] == [
        "NUMERIC(6, 2)",
        "TIMESTAMP WITH TIME ZONE",
    ]


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("{from: one, jdbc: nonsense, table: t}", "is no address of a database"),
        ("{from: one, jdbc: 'oracl://h/d', table: t}", "oracl is no known kind of database"),
        (
            "{from: one, jdbc: 'sqlite:///x.db', table: t, mode: update}",
            "rows can be updated only by their keys",
        ),
        ("{from: one, jdbc: 'jdbc:postgresql://h/d', table: t, jar: no.jar}", "there is no no.jar"),
        (
            "{from: one, jdbc: 'x://h/d', driver: no_such_driver, table: t}",
            "needs the Python package no_such_",
        ),
    ],
)
def test_mistakes(sink: str, message: str) -> None:
    (line,) = mistakes(base_with(sink=sink))
    assert message in line
