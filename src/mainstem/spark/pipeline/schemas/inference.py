"""Infers the columns of JSON and CSV values from a sample of them.

What all values of a field have in common decides: whole numbers become BIGINT, mixed with others DOUBLE,
times that are all ISO 8601 TIMESTAMP, everything that does not agree STRING. No Spark here: the sample is
small.
"""

from __future__ import annotations

import csv
import datetime
import json
import re
from collections.abc import Iterable
from typing import Any

from mainstem.spark.pipeline.schemas.ddl import Column, DataType, Schema, simple

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?")
_NOTHING = DataType("nothing")
_EMPTY = DataType("struct")


class CannotInfer(ValueError):
    """The sample tells nothing."""


def infer_json(values: Iterable[bytes | None]) -> Schema:
    """The columns of JSON objects; values that are none are left out, they will be dead letters."""
    found, seen = _EMPTY, 0
    for value in values:
        try:
            row = json.loads(value) if value is not None else None
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and row:
            found, seen = _merge(found, _type_of(row)), seen + 1
    if not seen:
        raise CannotInfer("no value in the sample is a JSON object")
    return _settled(found).fields


def infer_csv(values: Iterable[bytes | None], delimiter: str = ",") -> Schema:
    """The columns of CSV lines, named _c0, _c1 and so on, as Spark names them."""
    columns: list[DataType] = []
    for value in values:
        try:
            line = (value or b"").decode("utf-8")
            cells = next(csv.reader([line], delimiter=delimiter), [])
        except (UnicodeDecodeError, csv.Error):
            continue
        columns += [_NOTHING] * (len(cells) - len(columns))
        for index, cell in enumerate(cells):
            columns[index] = _merge(columns[index], _type_of(_cell(cell)))
    if not columns:
        raise CannotInfer("no value in the sample is a line of CSV")
    return tuple(Column(f"_c{index}", _settled(kind)) for index, kind in enumerate(columns))


def _cell(text: str) -> Any:
    if not text:
        return None
    if re.fullmatch(r"[+-]?\d{1,18}", text):
        return int(text)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text


def _type_of(value: Any) -> DataType:
    if value is None:
        return _NOTHING
    if isinstance(value, bool):
        return simple("boolean")
    if isinstance(value, int):
        return simple("bigint") if -(2**63) <= value < 2**63 else DataType("decimal(38,0)")
    if isinstance(value, float):
        return simple("double")
    if isinstance(value, list):
        element = _NOTHING
        for item in value:
            element = _merge(element, _type_of(item))
        return DataType("array", parts=(element,))
    if isinstance(value, dict):
        return DataType("struct", fields=tuple(Column(key, _type_of(item)) for key, item in value.items()))
    return simple(_kind_of_text(str(value)))


def _kind_of_text(text: str) -> str:
    kind = "date" if _DATE.fullmatch(text) else "timestamp" if _TIME.fullmatch(text) else "string"
    if kind != "string":
        try:
            datetime.datetime.fromisoformat(text)
        except ValueError:
            return "string"
    return kind


def _merge(one: DataType, other: DataType) -> DataType:
    if one == other or other == _NOTHING:
        return one
    if one == _NOTHING:
        return other
    if one.name == other.name == "struct":
        fields = {column.name: column for column in one.fields}
        for column in other.fields:
            known = fields.get(column.name)
            kind = column.type if known is None else _merge(known.type, column.type)
            fields[column.name] = Column(column.name, kind)
        return DataType("struct", fields=tuple(fields.values()))
    if one.name == other.name == "array":
        return DataType("array", parts=(_merge(one.parts[0], other.parts[0]),))
    names = {one.name, other.name}
    if names <= {"bigint", "double", "decimal(38,0)"}:
        return simple("double") if "double" in names else DataType("decimal(38,0)")
    if names == {"date", "timestamp"}:
        return simple("timestamp")
    return simple("string")


def _settled(kind: DataType) -> DataType:
    """What was null everywhere becomes a text."""
    if kind in (_NOTHING, _EMPTY):
        return simple("string")
    fields = tuple(Column(column.name, _settled(column.type)) for column in kind.fields)
    return DataType(kind.name, fields, tuple(_settled(part) for part in kind.parts))
