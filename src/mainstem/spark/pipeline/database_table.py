"""Writes a batch into a database table exactly once: rows and the batch's number in one transaction.

It goes through Python's DB-API, so a driver from pip is enough. No Spark here.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import Any

from mainstem.spark.pipeline.addresses import Database, database
from mainstem.spark.pipeline.model import JdbcSink
from mainstem.spark.pipeline.option_text import as_text

BATCHES_TABLE = "mainstem_batches"
_ROWS_AT_ONCE = 1000


def write_rows(sink: JdbcSink, path: str | None, rows: Any, query_id: str, batch_id: int) -> bool:
    """Insert an Arrow table; False when the batch is there already. `path` is where a file database is."""
    where = database(sink.jdbc, sink.driver)
    if path is not None:
        where = where._replace(name=path)
    connection = connect(where, as_text(sink.options))
    try:
        written = _Writer(connection, where.dialect, sink).write(rows, query_id, batch_id)
        connection.commit()
        return written
    except BaseException:
        connection.rollback()
        raise
    finally:
        connection.close()


def connect(where: Database, options: dict[str, str]) -> Any:
    """A connection whose work is one transaction until it is committed."""
    driver = importlib.import_module(where.driver)
    if where.dialect == "sqlite":
        # With autocommit left to us, creating tables is part of the transaction as well.
        connection = driver.connect(where.name, timeout=60, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        return connection
    names = {"host": where.host, "user": where.user, "password": where.password}
    names["dbname" if where.driver.startswith("psycopg") else "database"] = where.name
    arguments = {key: value for key, value in names.items() if value is not None}
    if where.port is not None:
        arguments["port"] = where.port  # type: ignore[assignment]
    return driver.connect(**arguments, **where.options, **options)


class _Writer:
    def __init__(self, connection: Any, dialect: str, sink: JdbcSink) -> None:
        self._cursor = connection.cursor()
        self._dialect = dialect
        self._sink = sink
        self._mark = "?" if dialect == "sqlite" else "%s"

    def write(self, rows: Any, query_id: str, batch_id: int) -> bool:
        self._execute(
            f"CREATE TABLE IF NOT EXISTS {BATCHES_TABLE} "
            "(query_id VARCHAR(64) PRIMARY KEY, batch_id BIGINT NOT NULL)"
        )
        self._execute(f"SELECT batch_id FROM {BATCHES_TABLE} WHERE query_id = {self._mark}", (query_id,))
        found = self._cursor.fetchone()
        if found is not None and int(found[0]) >= batch_id:
            return False
        self._execute(self._create(rows.schema))
        statement = self._insert(rows.schema.names)
        for chunk in _chunks(rows):
            self._cursor.executemany(statement, chunk)
        if found is None:
            text = f"INSERT INTO {BATCHES_TABLE} (batch_id, query_id) VALUES ({self._mark}, {self._mark})"
        else:
            text = f"UPDATE {BATCHES_TABLE} SET batch_id = {self._mark} WHERE query_id = {self._mark}"
        self._execute(text, (batch_id, query_id))
        return True

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._cursor.execute(statement, tuple(values))

    def _quoted(self, name: str) -> str:
        quote = "`" if self._dialect == "mysql" else '"'
        return ".".join(quote + part.replace(quote, quote * 2) + quote for part in name.split("."))

    def _column(self, name: str) -> str:
        quote = "`" if self._dialect == "mysql" else '"'
        return quote + name.replace(quote, quote * 2) + quote

    def _create(self, schema: Any) -> str:
        columns = [f"{self._column(field.name)} {self._type(field.type, field.name)}" for field in schema]
        if self._sink.keys:
            columns.append(f"PRIMARY KEY ({', '.join(map(self._column, self._sink.keys))})")
        return f"CREATE TABLE IF NOT EXISTS {self._quoted(self._sink.table)} ({', '.join(columns)})"

    def _type(self, kind: Any, name: str) -> str:
        import pyarrow.types as is_

        if is_.is_boolean(kind):
            return "BOOLEAN"
        if is_.is_integer(kind):
            return "BIGINT" if kind.bit_width == 64 else "INTEGER"
        if is_.is_floating(kind):
            return "DOUBLE PRECISION"
        if is_.is_decimal(kind):
            return f"NUMERIC({kind.precision}, {kind.scale})"
        if is_.is_timestamp(kind):
            return "TIMESTAMP WITH TIME ZONE" if kind.tz and self._dialect == "postgresql" else "TIMESTAMP"
        if is_.is_date(kind):
            return "DATE"
        if is_.is_binary(kind) or is_.is_large_binary(kind):
            return "BYTEA" if self._dialect == "postgresql" else "BLOB"
        if is_.is_string(kind) or is_.is_large_string(kind):
            return "VARCHAR(255)" if self._dialect == "mysql" and name in self._sink.keys else "TEXT"
        raise ValueError(
            f"the column {name} is {kind}, which a table cannot hold; make a text of it with to_json({name})"
        )

    def _insert(self, names: Sequence[str]) -> str:
        columns = ", ".join(map(self._column, names))
        marks = ", ".join([self._mark] * len(names))
        text = f"INSERT INTO {self._quoted(self._sink.table)} ({columns}) VALUES ({marks})"
        if not self._sink.keys:
            return text
        others = [self._column(name) for name in names if name not in self._sink.keys]
        if self._dialect == "mysql":
            first = self._column(names[0])
            changes = ", ".join(f"{name} = VALUES({name})" for name in others) or f"{first} = {first}"
            return f"{text} ON DUPLICATE KEY UPDATE {changes}"
        keys = ", ".join(map(self._column, self._sink.keys))
        changes = ", ".join(f"{name} = excluded.{name}" for name in others)
        return f"{text} ON CONFLICT ({keys}) DO " + (f"UPDATE SET {changes}" if changes else "NOTHING")


def _chunks(rows: Any) -> Iterator[list[tuple[Any, ...]]]:
    for batch in rows.to_batches(max_chunksize=_ROWS_AT_ONCE):
        columns = [column.to_pylist() for column in batch.columns]
        chunk = list(zip(*columns, strict=True))
        if chunk:
            yield chunk
