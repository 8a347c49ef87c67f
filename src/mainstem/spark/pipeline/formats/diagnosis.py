"""Says why a text does not fit its schema, for the headers of dead letters.

Spark only marks such values. This runs for bad ones alone, so it may take its time; it never raises. It
travels to Spark's workers, so there is no Spark here.
"""

from __future__ import annotations

import datetime
from typing import Any

from mainstem.spark.pipeline.schemas.ddl import DataType, Schema

_SHOWN = 60
_INTEGERS = {"tinyint": 2**7, "smallint": 2**15, "int": 2**31, "bigint": 2**63}


class Diagnosis:
    """Gives the reason for each value of an Arrow array."""

    def __init__(self, columns: Schema) -> None:
        self.columns = columns

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
        return self.misfit(text) or f"it does not fit the schema: {shown(text)}"

    def misfit(self, text: str) -> str | None:
        """What is wrong with it, where that can be told."""
        raise NotImplementedError


def is_in_range(value: int, kind: DataType) -> bool:
    """Whether a whole number is in the range of a type of whole numbers."""
    limit = _INTEGERS[kind.name]
    return -limit <= value < limit


def is_whole(kind: DataType) -> bool:
    return kind.name in _INTEGERS


def is_fractional(kind: DataType) -> bool:
    return kind.name in ("float", "double") or kind.name.startswith("decimal")


def is_of_time(kind: DataType) -> bool:
    return kind.name in ("timestamp", "timestamp_ntz", "date")


def is_time(text: str) -> bool:
    try:
        datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def shown(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
