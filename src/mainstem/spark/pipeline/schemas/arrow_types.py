"""The Arrow types of columns. Workers have no JVM to parse DDL, so the decoders build their arrays with
these."""

from __future__ import annotations

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
