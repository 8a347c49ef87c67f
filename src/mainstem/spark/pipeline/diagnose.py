"""Says why a JSON or CSV value does not fit its schema, for the headers of dead letters.

Spark only marks such values. This runs for bad ones alone, so it may take its time; it never raises.
"""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Iterator
from typing import Any

from mainstem.spark.pipeline.schemas.ddl import DataType, Schema

_SHOWN = 60
_INTEGERS = {"tinyint": 2**7, "smallint": 2**15, "int": 2**31, "bigint": 2**63}


class Diagnosis:
    """Gives the reason for each value of an Arrow array. It travels to Spark's workers."""

    def __init__(self, format_name: str, columns: Schema, delimiter: str = ",") -> None:
        self._format = format_name
        self._columns = columns
        self._delimiter = delimiter

    def __call__(self, values: Any) -> Any:
        import pyarrow as pa

        return pa.array([self.reason(value.as_py()) for value in values], pa.string())

    def reason(self, value: bytes | None) -> str | None:
        if value is None:
            return None
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError as error:
            return f"not text: byte {error.start} is not UTF-8"
        found = self._json(text) if self._format == "json" else self._csv(text)
        return found or f"it does not fit the schema: {_shown(text)}"

    def _json(self, text: str) -> str | None:
        try:
            parsed = json.loads(text)
        except json.JSONDecodeError as error:
            if error.msg == "Extra data":
                return f"more than one JSON value: after the first comes {_shown(text[error.pos :].strip())}"
            return f"not JSON: {error}"
        except (ValueError, RecursionError) as error:
            return f"not JSON: {error}"
        if not isinstance(parsed, dict):
            return f"not a JSON object but {_kind(parsed)}"
        return next(_misfits(parsed, self._columns, ""), None)

    def _csv(self, text: str) -> str | None:
        try:
            rows = list(csv.reader([text], delimiter=self._delimiter))
        except csv.Error as error:
            return f"not CSV: {error}"
        cells = rows[0] if rows else []
        if len(cells) != len(self._columns):
            return f"{len(cells)} columns instead of {len(self._columns)}"
        for cell, column in zip(cells, self._columns, strict=True):
            if cell and (reason := _text_misfit(cell, column.type)) is not None:
                return f"column {column.name}: {reason}"
        return None


def _misfits(row: dict[str, Any], columns: Schema, prefix: str) -> Iterator[str]:
    by_name = {column.name: column for column in columns}
    for name, column in by_name.items():
        value = row.get(name)
        if value is None:
            if not column.nullable:
                yield f"field {prefix}{name} is missing, and the schema says NOT NULL"
            continue
        reason = _misfit(value, column.type, f"{prefix}{name}")
        if reason is not None:
            yield reason


def _misfit(value: Any, kind: DataType, name: str) -> str | None:
    if value is None:
        return None
    if kind.name == "struct":
        if not isinstance(value, dict):
            return f"field {name} is {_kind(value)}, not an object"
        return next(_misfits(value, kind.fields, f"{name}."), None)
    if kind.name == "array":
        if not isinstance(value, list):
            return f"field {name} is {_kind(value)}, not an array"
        found = (_misfit(item, kind.parts[0], f"{name}[{index}]") for index, item in enumerate(value))
        return next((reason for reason in found if reason is not None), None)
    if kind.name == "map":
        if not isinstance(value, dict):
            return f"field {name} is {_kind(value)}, not an object"
        found = (_misfit(item, kind.parts[1], f"{name}.{key}") for key, item in value.items())
        return next((reason for reason in found if reason is not None), None)
    if _fits(value, kind):
        return None
    return f"field {name} is {_kind(value)}, not {kind.ddl()}"


def _fits(value: Any, kind: DataType) -> bool:
    if kind.name in _INTEGERS:
        limit = _INTEGERS[kind.name]
        return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
    if kind.name == "boolean":
        return isinstance(value, bool)
    if kind.name in ("float", "double") or kind.name.startswith("decimal"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind.name in ("timestamp", "timestamp_ntz", "date"):
        if isinstance(value, int) and kind.name == "timestamp":
            return True
        return isinstance(value, str) and _is_time(value)
    return True  # anything can become a text


def _text_misfit(cell: str, kind: DataType) -> str | None:
    try:
        if kind.name in _INTEGERS:
            fits = -_INTEGERS[kind.name] <= int(cell) < _INTEGERS[kind.name]
        elif kind.name in ("float", "double") or kind.name.startswith("decimal"):
            float(cell)
            fits = True
        elif kind.name == "boolean":
            fits = cell.lower() in ("true", "false")
        elif kind.name in ("timestamp", "timestamp_ntz", "date"):
            fits = _is_time(cell)
        else:
            fits = True
    except ValueError:
        fits = False
    return None if fits else f"{_shown(cell)} is not {kind.ddl()}"


def _is_time(text: str) -> bool:
    try:
        datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    return _shown(json.dumps(value, ensure_ascii=False))


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
