"""Addresses of databases, as Python drivers and as Java write them."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from mainstem.spark.pipeline.problems import did_you_mean

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
