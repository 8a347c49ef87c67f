"""Whether the columns of a view can be written with an Avro schema, judged by names and types before a run.

The library that writes is lenient: it leaves out columns that the schema does not have, makes a truth of any
text, and writes numbers that are too large for readers. So it is not asked. No Spark here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mainstem.nearest import nearest_name
from mainstem.spark.pipeline.avro_schema import Defaulted
from mainstem.spark.pipeline.schemas.ddl import DataType, Schema

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
    yield from _record(columns, fields, "")


def _record(columns: Schema, fields: Schema, path: str) -> Iterator[Misfit]:
    given = {column.name: column for column in columns}
    wanted = {field.name: field for field in fields}
    extra = [name for name in given if name not in wanted]
    for name, field in wanted.items():
        if name in given:
            yield from _value(given[name].type, field.type, f"{path}{name}", nullable=field.nullable)
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


def _value(column: DataType, field: DataType, path: str, *, nullable: bool) -> Iterator[Misfit]:
    if column.name == field.name == "struct":
        yield from _record(column.fields, field.fields, f"{path}.")
    elif column.name == field.name and field.parts:
        names = ("element",) if field.name == "array" else ("key", "value")
        for name, part, wanted in zip(names, column.parts, field.parts, strict=True):
            yield from _value(part, wanted, f"{path}.{name}", nullable=True)
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
