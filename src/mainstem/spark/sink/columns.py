"""The columns of a DataFrame as the parts of records: checked on the driver, taken from Arrow in the tasks.

The checks and their words are those of Spark's connector. No row is looked at by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mainstem.nearest import did_you_mean
from mainstem.spark.sink.errors import SinkError, SinkSchemaError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

_TYPES = {
    "topic": "string",
    "key": "string or binary",
    "value": "string or binary",
    "headers": "array<struct<key:string,value:binary>>",
    "partition": "int",
}


@dataclass(frozen=True)
class Columns:
    """The place of each column; -1 where there is none. `topic` is -1 when the option names the topic."""

    topic: int
    key: int
    value: int
    headers: int
    partition: int


@dataclass(frozen=True)
class Rows:
    """Rows of one topic. All arrays have the same length; None where there is no such column."""

    key: pa.BinaryArray | None
    value: pa.BinaryArray
    headers: pa.ListArray | None
    partition: pa.Int32Array | None


def check_columns(schema: StructType, topic: str | None) -> Columns:
    """Where the columns of records are; SinkSchemaError in the words of Spark's connector."""
    places: dict[str, int] = {}
    for place, name in enumerate(schema.fieldNames()):
        if name in places:
            raise SinkSchemaError(
                f"there are two columns {name}, and Spark hands no such rows to Python: leave one out or "
                "give it another name"
            )
        places[name] = place
    if topic is None and "topic" not in places:
        raise SinkSchemaError(
            "topic option required when no 'topic' attribute is present. "
            "Use the topic option for setting a topic."
        )
    if "value" not in places:
        raise SinkSchemaError(f"Required attribute 'value' not found{did_you_mean('value', places)}")
    for name, wanted in _TYPES.items():
        if name in places and not (name == "topic" and topic is not None):
            found = schema.fields[places[name]].dataType
            if not _is_allowed(name, found):
                raise SinkSchemaError(
                    f"{name} attribute unsupported type {found.simpleString()}. {name} must be a(n) {wanted}"
                )
    found_places = {name: places.get(name, -1) for name in _TYPES}
    if topic is not None:
        found_places["topic"] = -1
    return Columns(**found_places)


def _is_allowed(name: str, found: DataType) -> bool:
    from pyspark.sql.types import ArrayType, BinaryType, IntegerType, StringType, StructType

    if name == "topic":
        return isinstance(found, StringType)
    if name == "partition":
        return isinstance(found, IntegerType)
    if name == "headers":
        if not isinstance(found, ArrayType) or not isinstance(found.elementType, StructType):
            return False
        fields = found.elementType.fields
        return (
            [field.name for field in fields] == ["key", "value"]
            and isinstance(fields[0].dataType, StringType)
            and isinstance(fields[1].dataType, BinaryType)
        )
    return isinstance(found, (StringType, BinaryType))


def rows_by_topic(table: pa.Table, columns: Columns, topic: str | None) -> list[tuple[str, Rows]]:
    """The rows of each topic, in their order."""
    if topic is not None:
        return [(topic, _rows(table, columns))]
    import pyarrow.compute as pc

    names = table.column(columns.topic).combine_chunks()
    if names.null_count:
        raise SinkError("null topic present in the data. Use the topic option for setting a default topic.")
    distinct = pc.unique(names)
    if len(distinct) == 1:
        return [(distinct[0].as_py(), _rows(table, columns))]
    return [(name.as_py(), _rows(table.filter(pc.equal(names, name)), columns)) for name in distinct]


def _rows(table: pa.Table, columns: Columns) -> Rows:
    headers = None
    if columns.headers >= 0:
        headers = table.column(columns.headers).combine_chunks()
        _check_headers(headers)
    partition = None
    if columns.partition >= 0:
        partition = table.column(columns.partition).combine_chunks()
    return Rows(
        key=None if columns.key < 0 else _binary(table, columns.key),
        value=_binary(table, columns.value),
        headers=headers,
        partition=partition,
    )


def _check_headers(headers: pa.ListArray) -> None:
    items = headers.flatten()
    if not len(items) or not items.flatten()[0].null_count:
        return
    for number, row in enumerate(headers.to_pylist()):
        keys = [item and item["key"] for item in row or ()]
        if None in keys:
            raise SinkError(
                f"the column headers has a header without a key, in row {number} of those that a task writes "
                f"at once, whose keys are {keys}: give it one, or leave it out with "
                "filter(headers, h -> h.key IS NOT NULL)"
            )


def _binary(table: pa.Table, place: int) -> pa.BinaryArray:
    import pyarrow as pa

    column = table.column(place).combine_chunks()
    # Strings are UTF-8 already, so this copies nothing unless Spark uses 64-bit offsets. A view needs none of
    # Arrow's functions, which take a new worker a fifth of a second to load.
    if column.type in (pa.string(), pa.binary()):
        return column.view(pa.binary())
    return column.cast(pa.binary())
