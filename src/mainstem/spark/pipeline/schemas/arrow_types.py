"""Arrow between Spark and our code in its workers: the types of columns, since workers have no JVM to parse
DDL, and functions on whole arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from mainstem.spark.pipeline.schemas.ddl import DataType, Schema


def arrow_type(kind: DataType) -> Any:
    """The Arrow type in which Spark takes a column of this type from Python."""
    import pyarrow as pa

    if kind.name == "struct":
        return struct_type(kind.fields)
    if kind.name == "array":
        return pa.list_(arrow_type(kind.parts[0]))
    if kind.name == "map":
        return pa.map_(arrow_type(kind.parts[0]), arrow_type(kind.parts[1]))
    if kind.name.startswith("decimal"):
        precision, scale = kind.name[len("decimal(") : -1].split(",")
        return pa.decimal128(int(precision), int(scale))
    if kind.name.startswith(("varchar", "char")):
        return pa.string()
    return {
        "boolean": pa.bool_(),
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
    }[kind.name]


def struct_type(schema: Schema) -> Any:
    import pyarrow as pa

    return pa.struct([pa.field(column.name, arrow_type(column.type)) for column in schema])


def arrow_function(function: Callable[[Any], Any], kind: str) -> Any:
    """A Spark function from a column to a column, made of one on Arrow arrays; `kind` is the DDL of its
    result."""
    from pyspark.sql import functions

    with warnings.catch_warnings():
        # Spark would rather read type hints, which an object with a `__call__` cannot show it.
        warnings.simplefilter("ignore", UserWarning)
        untyped: Any = functions  # its type stubs lack these two
        return untyped.arrow_udf(function, kind, untyped.ArrowUDFType.SCALAR)
