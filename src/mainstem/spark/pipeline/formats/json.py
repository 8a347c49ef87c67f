"""JSON: one object in each value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mainstem.spark.pipeline.formats import DATA
from mainstem.spark.pipeline.formats.diagnosis import (
    Diagnosis,
    is_fractional,
    is_in_range,
    is_of_time,
    is_time,
    is_whole,
    shown,
)
from mainstem.spark.pipeline.formats.spark_reader import COMMON_OPTIONS, CORRUPT, SparkReaderFormat
from mainstem.spark.pipeline.schemas.ddl import DataType, Schema
from mainstem.spark.pipeline.spark_functions import F

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from pyspark.sql import Column

    from mainstem.spark.pipeline.sinks.topic import TopicSink
    from mainstem.spark.pipeline.sources.decode import Decode

_ROWS = "__rows"


class Json(SparkReaderFormat):
    KIND = "json"
    OPTIONS = (
        *COMMON_OPTIONS,
        "allowBackslashEscapingAnyCharacter",
        "allowComments",
        "allowNonNumericNumbers",
        "allowNumericLeadingZeros",
        "allowSingleQuotes",
        "allowUnquotedControlChars",
        "allowUnquotedFieldNames",
        "dropFieldIfAllNull",
        "ignoreNullFields",
        "inferTimestamp",
        "prefersDecimal",
        "pretty",
        "primitivesAsString",
        "sortKeys",
        "useUnsafeRow",
        "writeNonAsciiCharacterAsCodePoint",
    )

    def infer(self, decode: Decode, values: Sequence[bytes]) -> Schema:
        """Values that are no objects are left out, they will be dead letters."""
        from mainstem.spark.pipeline.schemas.inference import EMPTY, CannotInfer, merged, settled, type_of

        found, seen = EMPTY, 0
        for value in values:
            try:
                row = json.loads(value)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict) and row:
                found, seen = merged(found, type_of(row)), seen + 1
        if not seen:
            raise CannotInfer("no value in the sample is a JSON object")
        return settled(found).fields

    def parsed(self, text: Column, columns: Schema, options: dict[str, str]) -> Column:
        """Spark's parser looks at the first JSON value of a text, and not at what follows it. So it is given
        an array of the text and of null: what is more than one object leaves no array, or not these two in
        it."""
        element = ", ".join(column.ddl(":") for column in columns)
        schema = f"{_ROWS} ARRAY<STRUCT<{element}>>, {CORRUPT} STRING"
        marked = F.concat(F.lit(f'{{"{_ROWS}":['), text, F.lit("\n,null]}"))
        return F.from_json(marked, schema, options)

    def row(self) -> Column:
        return F.get(f"{DATA}.{_ROWS}", F.lit(0))

    def is_bad(self) -> Column:
        rows = F.col(f"{DATA}.{_ROWS}")
        return super().is_bad() | (F.size(rows) != 2) | F.get(rows, F.lit(1)).isNotNull()

    def diagnosis(self, decode: Decode, columns: Schema) -> Diagnosis:
        return JsonDiagnosis(columns)

    def encoded(self, row: Column, sink: TopicSink, folder: FilePath) -> Column:
        return F.to_json(row)


class JsonDiagnosis(Diagnosis):
    """Why a text is no object of these columns."""

    def misfit(self, text: str) -> str | None:
        try:
            parsed = json.loads(text)
        except json.JSONDecodeError as error:
            if error.msg == "Extra data":
                return f"more than one JSON value: after the first comes {shown(text[error.pos :].strip())}"
            return f"not JSON: {error}"
        except (ValueError, RecursionError) as error:
            return f"not JSON: {error}"
        if not isinstance(parsed, dict):
            return f"not a JSON object but {_kind(parsed)}"
        return next(_misfits(parsed, self.columns, ""), None)


def _misfits(row: dict[str, Any], columns: Schema, prefix: str) -> Iterator[str]:
    for column in columns:
        name = f"{prefix}{column.name}"
        value = row.get(column.name)
        if value is not None:
            yield from _misfit(value, column.type, name)
        elif not column.nullable:
            yield f"field {name} is missing, and the schema says NOT NULL"


def _misfit(value: Any, kind: DataType, name: str) -> Iterator[str]:
    wanted = {"struct": (dict, "an object"), "map": (dict, "an object"), "array": (list, "an array")}
    if value is None:
        return
    if kind.name not in wanted:
        if not _fits(value, kind):
            yield f"field {name} is {_kind(value)}, not {kind.ddl()}"
        return
    python_type, described = wanted[kind.name]
    if not isinstance(value, python_type):
        yield f"field {name} is {_kind(value)}, not {described}"
    elif kind.name == "struct":
        yield from _misfits(value, kind.fields, f"{name}.")
    elif kind.name == "array":
        for index, item in enumerate(value):
            yield from _misfit(item, kind.parts[0], f"{name}[{index}]")
    else:
        for key, item in value.items():
            yield from _misfit(item, kind.parts[1], f"{name}.{key}")


def _fits(value: Any, kind: DataType) -> bool:
    if is_whole(kind):
        return isinstance(value, int) and not isinstance(value, bool) and is_in_range(value, kind)
    if kind.name == "boolean":
        return isinstance(value, bool)
    if is_fractional(kind):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if is_of_time(kind):
        if isinstance(value, int) and kind.name == "timestamp":
            return True
        return isinstance(value, str) and is_time(value)
    return True  # anything can become a text


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    return shown(json.dumps(value, ensure_ascii=False))
