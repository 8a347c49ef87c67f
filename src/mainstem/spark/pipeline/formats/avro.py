"""Avro: one record without a header in each value, or behind the frame of a schema registry."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from mainstem.nearest import nearest_name
from mainstem.spark.pipeline.formats.arrow_decoding import ArrowFormat, Decoder, NotDecodable, Row
from mainstem.spark.pipeline.problems import Path, Problem
from mainstem.spark.pipeline.schemas.arrow_types import arrow_function
from mainstem.spark.pipeline.schemas.ddl import Column, DataType, Schema, simple
from mainstem.spark.pipeline.schemas.definitions import Definition, SchemaError, read_bytes

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from mainstem.spark.pipeline.sinks.topic import TopicSink


class AvroDecoder(Decoder):
    """Rows of Avro records."""

    NAME = "Avro"

    def rows(self) -> Callable[[bytes], Row]:
        import fastavro

        schema = fastavro.parse_schema(json.loads(self.schema or ""))

        def row(payload: bytes) -> Row:
            stream = io.BytesIO(payload)
            try:
                found: Any = fastavro.schemaless_reader(stream, schema, None)
            except (EOFError, IndexError, UnicodeDecodeError) as error:
                raise NotDecodable(_reason(error)) from None
            left = len(payload) - stream.tell()
            if left:
                raise NotDecodable(f"{left} bytes are left over")
            return dict(found)

        return row


class AvroEncoder:
    """Encodes an Arrow struct array as Avro; a row that does not fit the schema fails with the column's
    name."""

    def __init__(self, schema: str) -> None:
        self._text = schema
        self._schema: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_schema": None}

    def __call__(self, rows: Any) -> Any:
        import fastavro
        import pyarrow as pa

        if self._schema is None:
            self._schema = fastavro.parse_schema(json.loads(self._text))
        encoded = []
        for row in rows:
            stream = io.BytesIO()
            fastavro.schemaless_writer(stream, self._schema, row.as_py(maps_as_pydicts="strict"))
            encoded.append(stream.getvalue())
        return pa.array(encoded, pa.binary())


class Avro(ArrowFormat):
    KIND = "avro"
    ENCODES = True
    DECODER = AvroDecoder

    def definition_of(self, text: str, field: str) -> Definition:
        try:
            return Definition(columns_of(text), text)
        except AvroSchemaError as error:
            raise SchemaError(str(error), field) from None

    def check_encoding(self, sink: TopicSink, path: Path, folder: FilePath) -> Iterator[Problem]:
        if sink.schema_file is None:
            yield Problem((*path, "encode"), "avro needs schema_file, the schema to write with")
            return
        try:
            columns_of(_schema_to_write(sink, folder))
        except (SchemaError, AvroSchemaError, UnicodeDecodeError) as error:
            yield Problem((*path, "schema_file"), str(error))

    def misfits(self, sink: TopicSink, path: Path, frame: DataFrame, folder: FilePath) -> Iterator[Problem]:
        """What the schema does not take. A column that another part of the record is made of may be
        missing."""
        from mainstem.spark.pipeline.schemas.spark_types import schema_of

        for misfit in misfits(schema_of(frame), columns_of(_schema_to_write(sink, folder))):
            if misfit.extra is None or not sink.needs(misfit.extra, frame):
                yield Problem((*path, "schema_file"), misfit.message, misfit.hint)

    def encoded(self, row: SparkColumn, sink: TopicSink, folder: FilePath) -> SparkColumn:
        encoded: SparkColumn = arrow_function(AvroEncoder(_schema_to_write(sink, folder)), "binary")(row)
        return encoded


def _schema_to_write(sink: TopicSink, folder: FilePath) -> str:
    return read_bytes(sink.schema_file or "", folder, "schema_file").decode()


def _reason(error: Exception) -> str:
    """What fastavro's errors, which are those of Python, mean."""
    if isinstance(error, UnicodeDecodeError):
        return "a text in it is not UTF-8"
    if isinstance(error, EOFError) and "Expected -" in str(error):
        return "a length in it is negative"
    # An end within a text is told as an index of that text.
    if isinstance(error, EOFError) or "string index" in str(error):
        return "the record ends too early"
    return "it has a branch of a union or a symbol of an enum that the schema does not have"


# How a schema reads as columns, as Spark's own Avro reader would name them.
_PRIMITIVES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_LOGICAL = {
    ("int", "date"): "date",
    ("long", "timestamp-millis"): "timestamp",
    ("long", "timestamp-micros"): "timestamp",
    ("long", "local-timestamp-millis"): "timestamp_ntz",
    ("long", "local-timestamp-micros"): "timestamp_ntz",
}


class Defaulted(Column):
    """A column whose field has a default: a record may be written without it."""

    __slots__ = ()


class AvroSchemaError(ValueError):
    """The text is no Avro schema, or one that does not fit columns."""


def columns_of(text: str) -> Schema:
    """The columns of the record that this schema (JSON) describes."""
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise AvroSchemaError(f"the Avro schema is not JSON: {error}") from None
    import fastavro
    from fastavro.schema import SchemaParseException, UnknownType

    try:
        fastavro.parse_schema(parsed)
    except (SchemaParseException, UnknownType, ValueError, KeyError, TypeError) as error:
        raise AvroSchemaError(f"this is no Avro schema: {error}") from None
    found, nullable = _SchemaReader().type_of(parsed, "")
    if found.name != "struct" or nullable:
        raise AvroSchemaError("the Avro schema must describe a record")
    return found.fields


class _SchemaReader:
    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._open: list[str] = []

    def type_of(self, schema: Any, namespace: str) -> tuple[DataType, bool]:
        """The type, and whether it may be null."""
        if isinstance(schema, list):
            return self._union(schema, namespace)
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return simple(_PRIMITIVES[schema]), False
            name = schema if "." in schema or not namespace else f"{namespace}.{schema}"
            return self.type_of(self._named.get(name, self._named.get(schema)), namespace)
        kind = schema["type"]
        if isinstance(kind, list | dict):
            return self.type_of(kind, namespace)
        if kind == "array":
            element, _ = self.type_of(schema["items"], namespace)
            return DataType("array", parts=(element,)), False
        if kind == "map":
            value, _ = self.type_of(schema["values"], namespace)
            return DataType("map", parts=(simple("string"), value)), False
        if kind in ("record", "error", "enum", "fixed"):
            return self._of_name(schema, namespace), False
        if schema.get("logicalType") == "decimal":
            return _decimal(schema), False
        logical = _LOGICAL.get((kind, schema.get("logicalType", "")))
        return simple(logical or _PRIMITIVES[kind]), False

    def _of_name(self, schema: dict[str, Any], namespace: str) -> DataType:
        namespace = schema.get("namespace", namespace)
        full = schema["name"] if "." in schema["name"] or not namespace else f"{namespace}.{schema['name']}"
        self._named[full] = schema
        if schema["type"] == "enum":
            return simple("string")
        if schema["type"] == "fixed":
            return _decimal(schema) if schema.get("logicalType") == "decimal" else simple("binary")
        if full in self._open:
            raise AvroSchemaError(f"the record {full} contains itself; columns cannot")
        self._open.append(full)
        fields: list[Column] = []
        for field in schema["fields"]:
            kind, nullable = self.type_of(field["type"], namespace)
            made = Defaulted if "default" in field else Column
            fields.append(made(field["name"], kind, nullable))
        self._open.pop()
        return DataType("struct", fields=tuple(fields))

    def _union(self, members: list[Any], namespace: str) -> tuple[DataType, bool]:
        nullable = "null" in members
        others = [self.type_of(member, namespace)[0] for member in members if member != "null"]
        names = {other.name for other in others}
        if len(others) == 1:
            return others[0], nullable
        if names == {"int", "bigint"}:
            return simple("bigint"), nullable
        if names == {"float", "double"}:
            return simple("double"), nullable
        raise AvroSchemaError(f"a union of several types ({', '.join(sorted(names))}) does not fit a column")


def _decimal(schema: dict[str, Any]) -> DataType:
    return DataType(f"decimal({schema['precision']},{schema.get('scale', 0)})")


# Whether rows can be written with a schema is judged by names and types before a run. The library that writes
# is lenient: it leaves out columns that the schema does not have, makes a truth of any text, and writes
# numbers that are too large for readers. So it is not asked.
_WHOLE = ("tinyint", "smallint", "int")
# The types of columns that a field's type takes besides itself: what Avro's own rules widen, and the plain
# numbers that stand for times.
_WIDER = {
    "int": _WHOLE,
    "bigint": _WHOLE,
    "float": (*_WHOLE, "bigint"),
    "double": (*_WHOLE, "bigint", "float"),
    "date": _WHOLE,
    "timestamp": (*_WHOLE, "bigint"),
    "timestamp_ntz": (*_WHOLE, "bigint"),
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_TEXT = re.compile(r"string\b.*|(var)?char\(\d+\)")


class Misfit(NamedTuple):
    """What is wrong, and what to do. `extra` is the column, where one is not in the schema at all."""

    message: str
    hint: str
    extra: str | None = None


def misfits(columns: Schema, fields: Schema) -> Iterator[Misfit]:
    """All that keeps rows with these columns from being written as records with these fields."""
    yield from _record_misfits(columns, fields, "")


def _record_misfits(columns: Schema, fields: Schema, path: str) -> Iterator[Misfit]:
    given = {column.name: column for column in columns}
    wanted = {field.name: field for field in fields}
    extra = [name for name in given if name not in wanted]
    for name, field in wanted.items():
        if name in given:
            yield from _value_misfits(given[name].type, field.type, f"{path}{name}", nullable=field.nullable)
        elif not isinstance(field, Defaulted):
            message = f"the schema's field {path}{name} has no default, and no column has its name"
            yield Misfit(message, _instead(name, extra))
    for name in extra:
        message = f"the schema has no field for the column {path}{name}: it would not be written"
        close = nearest_name(name, [field for field in wanted if field not in given])
        hint = f"did you mean {close}? " if close is not None else ""
        yield Misfit(
            message, f"{hint}add a field to the schema, or leave it out of the view", f"{path}{name}"
        )


def _instead(name: str, extra: list[str]) -> str:
    close = nearest_name(name, extra)
    if close is None:
        return "add the column to the view, or give the field a default"
    return f"did you mean {close}? write {close} AS {name}" + (
        ": Avro's names have their case" if close.lower() == name.lower() else ""
    )


def _value_misfits(column: DataType, field: DataType, path: str, *, nullable: bool) -> Iterator[Misfit]:
    if column.name == field.name == "struct":
        yield from _record_misfits(column.fields, field.fields, f"{path}.")
    elif column.name == field.name and field.parts:
        names = ("element",) if field.name == "array" else ("key", "value")
        for name, part, wanted in zip(names, column.parts, field.parts, strict=True):
            yield from _value_misfits(part, wanted, f"{path}.{name}", nullable=True)
    elif not _is_wide_enough(column.name, field.name) and not (column.name == "void" and nullable):
        message = f"the column {path} is {column.ddl()}, which the schema's {field.ddl()} does not take"
        yield Misfit(message, _cast(path, field))


def _is_wide_enough(column: str, field: str) -> bool:
    if (given := _DECIMAL.fullmatch(column)) and (wanted := _DECIMAL.fullmatch(field)):
        scale, scale_max = int(given[2]), int(wanted[2])
        return scale <= scale_max and int(given[1]) - scale <= int(wanted[1]) - scale_max
    if field == "string":
        return _TEXT.fullmatch(column) is not None
    return column == field or column in _WIDER.get(field, ())


def _cast(path: str, field: DataType) -> str:
    if "." in path or field.fields or field.parts:
        return f"make it {field.ddl()}, or change the schema"
    return f"write CAST({path} AS {field.ddl()}) AS {path}, or change the schema"
