"""The columns that an Avro schema stands for, as Spark's own Avro reader would name them."""

from __future__ import annotations

import json
from typing import Any

from mainstem.spark.pipeline.schemas.ddl import Column, DataType, Schema, simple

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


def columns(text: str) -> Schema:
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
    found, nullable = _Reader().type_of(parsed, "")
    if found.name != "struct" or nullable:
        raise AvroSchemaError("the Avro schema must describe a record")
    return found.fields


class _Reader:
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
