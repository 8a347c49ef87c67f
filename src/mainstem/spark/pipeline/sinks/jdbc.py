"""`jdbc`: a table in a database. It goes through Python's DB-API, so a driver from pip is enough; with a jar,
Spark's own writer appends."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from msgspec import Meta

from mainstem.spark.pipeline.checking.refusals import missing_columns, repeated_columns
from mainstem.spark.pipeline.checking.rules import CheckContext, needs_package
from mainstem.spark.pipeline.parts import Options, OutputMode, as_text
from mainstem.spark.pipeline.problems import Path, Problem, did_you_mean
from mainstem.spark.pipeline.sinks import TableSink, WriteContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mainstem.spark.pipeline.places import Places

BATCHES_TABLE = "mainstem_batches"
_ROWS_AT_ONCE = 1000
_DRIVERS = {
    "postgresql": "psycopg",
    "postgres": "psycopg",
    "mysql": "pymysql",
    "mariadb": "pymysql",
    "sqlite": "sqlite3",
}
# Which SQL a driver's database speaks.
_DIALECTS = {
    "psycopg": "postgresql",
    "psycopg2": "postgresql",
    "pg8000": "postgresql",
    "pymysql": "mysql",
    "MySQLdb": "mysql",
    "sqlite3": "sqlite",
}


class JdbcSink(TableSink, frozen=True, kw_only=True):
    """A table in a database, exactly once by the batch number in the same transaction."""

    KIND: ClassVar[tuple[str, ...]] = ("jdbc",)

    jdbc: Annotated[
        str, Meta(description="the address: `postgresql://user@host/db`, `sqlite:///file` or `jdbc:...`")
    ]
    table: Annotated[str, Meta(description="the table; it is created when it is missing")]
    keys: Annotated[list[str], Meta(description="columns of its key: rows replace those of their key")] = []
    mode: Annotated[OutputMode, Meta(description="the output mode; `update` needs keys")] = "append"
    driver: Annotated[
        str | None, Meta(description="a Python driver (DB-API module); by the address otherwise")
    ] = None
    jar: Annotated[str | None, Meta(description="a JDBC driver: Spark writes by itself, at least once")] = (
        None
    )
    options: Annotated[Options, Meta(description="options for the driver")] = {}

    def describe(self) -> str:
        return f"table {self.table} in {hidden(self.jdbc)}"

    def check(self, path: Path, context: CheckContext) -> Iterator[Problem]:
        if self.mode == "update" and not self.keys:
            yield Problem((*path, "mode"), "rows can be updated only by their keys", "add keys: [column]")
        if self.mode == "complete":
            yield Problem((*path, "mode"), "a table takes append or update", "use update with keys")
        yield from self._check_driver(path) if self.jar is None else self._check_jar(self.jar, path, context)

    def _check_driver(self, path: Path) -> Iterator[Problem]:
        try:
            found = database(self.jdbc, self.driver)
        except AddressError as error:
            yield Problem((*path, "jdbc"), str(error), error.hint)
            return
        yield from needs_package(found.driver, (*path, "driver" if self.driver else "jdbc"))

    def _check_jar(self, jar: str, path: Path, context: CheckContext) -> Iterator[Problem]:
        if not (context.folder / FilePath(jar).expanduser()).is_file():
            yield Problem((*path, "jar"), f"there is no {jar}")
        if not self.jdbc.startswith("jdbc:"):
            hint = "for example jdbc:postgresql://..."
            yield Problem((*path, "jdbc"), "with a jar the address is Java's", hint)
        if self.keys:
            hint = "leave jar out: the Python driver replaces rows"
            yield Problem((*path, "keys"), "Spark's own writer only appends", hint, at_key=True)

    def analyse(self, path: Path, frame: DataFrame, folder: FilePath) -> Iterator[Problem]:
        yield from missing_columns(frame, self.source, self.keys, (*path, "keys"))
        yield from repeated_columns(frame, self.source, path)

    def write_batch(self, frame: DataFrame, batch_id: int, context: WriteContext) -> None:
        if self.jar is None:
            super().write_batch(frame, batch_id, context)
        else:
            options = as_text(self.options) | {"url": self.jdbc, "dbtable": self.table}
            frame.write.format("jdbc").mode("append").options(**options).save()

    def write_rows(self, rows: Any, query_id: str, batch_id: int, places: Places) -> bool:
        """Rows and the batch's number go in one transaction."""
        where = database(self.jdbc, self.driver)
        if where.dialect == "sqlite":
            where = where._replace(name=places.path(where.name))
        connection = connect(where, as_text(self.options))
        try:
            written = _Writer(connection, where.dialect, self).write(rows, query_id, batch_id)
            connection.commit()
            return written
        except BaseException:
            connection.rollback()
            raise
        finally:
            connection.close()


class AddressError(ValueError):
    """The address is not understood; `hint` says how one looks."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class Database(NamedTuple):
    """Where a database is, and which Python module speaks to it."""

    driver: str
    dialect: str
    host: str
    port: int | None
    name: str
    user: str | None
    password: str | None
    options: dict[str, str]


def database(address: str, driver: str | None = None) -> Database:
    """Read `postgresql://user:password@host:5432/name`, its `jdbc:` form, or `sqlite:///path`."""
    text = address.removeprefix("jdbc:")
    scheme, separator, rest = text.partition(":")
    if not separator:
        raise AddressError(f"{hidden(address)!r} is no address of a database", "postgresql://user@host/name")
    if driver is None:
        driver = _DRIVERS.get(scheme.lower())
        if driver is None:
            hint = did_you_mean(scheme, _DRIVERS) or "known are " + ", ".join(_DRIVERS)
            raise AddressError(f"{scheme} is no known kind of database", f"{hint}; or name a driver")
    dialect = _DIALECTS.get(driver, scheme.lower())
    if dialect == "sqlite":
        path = rest.removeprefix("//")
        path = path[1:] if rest.startswith("///") and not rest.startswith("////") else path.replace("//", "/")
        if not path:
            raise AddressError("the address names no file", "sqlite:///folder/file.db")
        return Database(driver, dialect, "", None, path, None, None, {})
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise AddressError(f"{hidden(address)!r} is no address: {error}") from None
    if not parts.hostname or not parts.path.strip("/"):
        raise AddressError(f"{hidden(address)!r} lacks a host or a name", f"{scheme}://user@host:5432/name")
    options = dict(parse_qsl(parts.query))
    user = parts.username or options.pop("user", None)
    password = parts.password or options.pop("password", None)
    return Database(driver, dialect, parts.hostname, port, parts.path.strip("/"), user, password, options)


def hidden(address: str) -> str:
    """The address without its password, to show."""
    text = re.sub(r"(//[^/@:]*):[^/@]*@", r"\1:***@", address)
    return re.sub(r"(password=)[^&]*", r"\1***", text)


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
