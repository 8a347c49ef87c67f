"""Infers the types of columns from a sample of values.

What all values of a field have in common decides: whole numbers become BIGINT, mixed with others DOUBLE,
times that are all ISO 8601 TIMESTAMP, everything that does not agree STRING. No Spark here: the sample is
small.
"""

from __future__ import annotations

import datetime
import re
from typing import Any

from mainstem.spark.pipeline.schemas.ddl import Column, DataType, simple

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?")
NOTHING = DataType("nothing")
EMPTY = DataType("struct")


class CannotInfer(ValueError):
    """The sample tells nothing."""


def type_of(value: Any) -> DataType:
    """The type that one value would have."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return simple("boolean")
    if isinstance(value, int):
        return simple("bigint") if -(2**63) <= value < 2**63 else DataType("decimal(38,0)")
    if isinstance(value, float):
        return simple("double")
    if isinstance(value, list):
        element = NOTHING
        for item in value:
            element = merged(element, type_of(item))
        return DataType("array", parts=(element,))
    if isinstance(value, dict):
        return DataType("struct", fields=tuple(Column(key, type_of(item)) for key, item in value.items()))
    return simple(_kind_of_text(str(value)))


def _kind_of_text(text: str) -> str:
    kind = "date" if _DATE.fullmatch(text) else "timestamp" if _TIME.fullmatch(text) else "string"
    if kind != "string":
        try:
            datetime.datetime.fromisoformat(text)
        except ValueError:
            return "string"
    return kind


def merged(one: DataType, other: DataType) -> DataType:
    """The type that both have in common."""
    if one == other or other == NOTHING:
        return one
    if one == NOTHING:
        return other
    if one.name == other.name == "struct":
        fields = {column.name: column for column in one.fields}
        for column in other.fields:
            known = fields.get(column.name)
            kind = column.type if known is None else merged(known.type, column.type)
            fields[column.name] = Column(column.name, kind)
        return DataType("struct", fields=tuple(fields.values()))
    if one.name == other.name == "array":
        return DataType("array", parts=(merged(one.parts[0], other.parts[0]),))
    names = {one.name, other.name}
    if names <= {"bigint", "double", "decimal(38,0)"}:
        return simple("double") if "double" in names else DataType("decimal(38,0)")
    if names == {"date", "timestamp"}:
        return simple("timestamp")
    return simple("string")


def settled(kind: DataType) -> DataType:
    """What was null everywhere becomes a text."""
    if kind in (NOTHING, EMPTY):
        return simple("string")
    fields = tuple(Column(column.name, settled(column.type)) for column in kind.fields)
    return DataType(kind.name, fields, tuple(settled(part) for part in kind.parts))
