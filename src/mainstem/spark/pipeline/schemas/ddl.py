"""Column types as text: reads the DDL in which Spark writes schemas, and writes it again.

Spark's workers cannot parse DDL and a validation must not start Spark, so the project has its own reader of
it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mainstem.spark.pipeline.problems import did_you_mean

# Every spelling that Spark accepts, and the one that it writes.
SIMPLE = {
    "boolean": "boolean",
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "variant": "variant",
}
_SIZED = {"decimal": "decimal", "dec": "decimal", "numeric": "decimal", "varchar": "varchar", "char": "char"}
_NESTED = ("array", "map", "struct")
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|('(?:[^'\\]|\\.)*')|([^\W\d]\w*)|(\d+)|([<>(),:]))")


class DdlError(ValueError):
    """The text is no DDL; `position` says where, `hint` what may be meant."""

    def __init__(self, message: str, position: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.hint = hint


class DataType(NamedTuple):
    """A type: `name` with sizes as Spark writes it, and the parts of a nested one."""

    name: str
    fields: tuple[Column, ...] = ()  # of a struct
    parts: tuple[DataType, ...] = ()  # the element of an array; key and value of a map

    def ddl(self) -> str:
        if self.name == "struct":
            return f"STRUCT<{', '.join(field.ddl(':') for field in self.fields)}>"
        if self.parts:
            return f"{self.name.upper()}<{', '.join(part.ddl() for part in self.parts)}>"
        return self.name.upper()

    @property
    def has_required_parts(self) -> bool:
        """Whether a value of this type has parts that must be there."""
        if any(not field.nullable or field.type.has_required_parts for field in self.fields):
            return True
        return any(part.has_required_parts for part in self.parts[-1:])


class Column(NamedTuple):
    """A column or a field of a struct."""

    name: str
    type: DataType
    nullable: bool = True

    def ddl(self, separator: str = "") -> str:
        name = (
            self.name
            if re.fullmatch(r"[A-Za-z_]\w*", self.name)
            else "`" + self.name.replace("`", "``") + "`"
        )
        return f"{name}{separator} {self.type.ddl()}{'' if self.nullable else ' NOT NULL'}"


Schema = tuple[Column, ...]


def simple(name: str) -> DataType:
    """A type without parts."""
    return DataType(SIMPLE[name])


def render(schema: Schema) -> str:
    """The schema as DDL."""
    return ", ".join(column.ddl() for column in schema)


def nullable(schema: Schema) -> Schema:
    """The same without NOT NULL, at any depth. A value that lacks a column is a dead letter, not a failure of
    its batch."""
    return tuple(Column(column.name, _nullable_type(column.type)) for column in schema)


def _nullable_type(kind: DataType) -> DataType:
    return DataType(kind.name, nullable(kind.fields), tuple(_nullable_type(part) for part in kind.parts))


def parse(text: str) -> Schema:
    """The columns of `a INT, b STRUCT<c: STRING> NOT NULL`; DdlError when it is none."""
    return _Parser(text).schema()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, int]] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                start = position + len(text[position:]) - len(text[position:].lstrip())
                raise DdlError(f"{text[start]!r} does not belong into a schema", start)
            self._tokens.append((match[0].strip(), match.end() - len(match[0].strip())))
            position = match.end()
        self._next = 0

    def schema(self) -> Schema:
        if not self._tokens:
            raise DdlError("the schema has no columns", 0)
        return self._columns(None)

    def _peek(self) -> str:
        return self._tokens[self._next][0] if self._next < len(self._tokens) else ""

    def _position(self) -> int:
        return self._tokens[self._next][1] if self._next < len(self._tokens) else len(self._text)

    def _take(self, wanted: str | None = None) -> str:
        token = self._peek()
        if not token or (wanted is not None and token.upper() != wanted):
            found = repr(token) if token else "the end"
            raise DdlError(f"{wanted or 'something'} is missing before {found}", self._position())
        self._next += 1
        return token

    def _columns(self, end: str | None) -> Schema:
        columns: list[Column] = []
        while True:
            at = self._position()
            column = self._column(nested=end is not None)
            if column.name.lower() in {other.name.lower() for other in columns}:
                raise DdlError(f"the column {column.name} is there twice", at)
            columns.append(column)
            if self._peek() == ",":
                self._take()
                continue
            if end is not None:
                self._take(end)
            elif self._peek():
                raise DdlError(f"a comma is missing before {self._peek()!r}", self._position())
            return tuple(columns)

    def _column(self, *, nested: bool) -> Column:
        at = self._position()
        name = self._take()
        if name[0] == "`":
            name = name[1:-1].replace("``", "`")
        elif not re.fullmatch(r"\w+", name):
            raise DdlError(f"a column's name is missing before {name!r}", at)
        if self._peek() == ":":
            self._take()
        if not self._peek() or self._peek() == ",":
            raise DdlError(f"the column {name} has no type", self._position())
        kind = self._type()
        nullable = True
        while self._peek().upper() in ("NOT", "COMMENT"):
            if self._take().upper() == "NOT":
                self._take("NULL")
                nullable = False
            else:
                self._take()
        return Column(name, kind, nullable)

    def _type(self) -> DataType:
        at = self._position()
        word = self._take()
        name = word.lower()
        if name in _NESTED:
            return self._nested(name)
        if name in _SIZED:
            return self._sized(_SIZED[name])
        if name in SIMPLE:
            return DataType(SIMPLE[name])
        known = [*SIMPLE, *_SIZED, *_NESTED]
        raise DdlError(f"there is no type {word}", at, did_you_mean(name, known, "types are"))

    def _nested(self, name: str) -> DataType:
        self._take("<")
        if name == "struct":
            return DataType("struct", fields=self._columns(">"))
        parts = [self._type()]
        if name == "map":
            self._take(",")
            parts.append(self._type())
        self._take(">")
        return DataType(name, parts=tuple(parts))

    def _sized(self, name: str) -> DataType:
        if self._peek() != "(":
            if name != "decimal":
                raise DdlError(f"{name} needs its length, such as {name}(20)", self._position())
            return DataType("decimal(10,0)")
        self._take()
        sizes = [self._take()]
        while self._peek() == ",":
            self._take()
            sizes.append(self._take())
        at = self._position()
        self._take(")")
        if not all(size.isdecimal() for size in sizes) or len(sizes) > (2 if name == "decimal" else 1):
            raise DdlError(f"{name}({','.join(sizes)}) is no type", at)
        if name == "decimal":
            sizes = [*sizes, "0"][:2]
            if not int(sizes[1]) <= int(sizes[0]) <= 38:
                raise DdlError("a decimal has at most 38 digits, and not more of them behind the point", at)
        return DataType(f"{name}({','.join(sizes)})")
