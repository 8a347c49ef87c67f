"""The columns of a DataFrame as the pipeline's own types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainstem.spark.pipeline.schemas import ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


def schema_of(frame: DataFrame) -> ddl.Schema:
    return _type(frame.schema).fields


def _type(kind: DataType) -> ddl.DataType:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        fields = (ddl.Column(field.name, _type(field.dataType), field.nullable) for field in kind.fields)
        return ddl.DataType("struct", fields=tuple(fields))
    if isinstance(kind, ArrayType):
        return ddl.DataType("array", parts=(_type(kind.elementType),))
    if isinstance(kind, MapType):
        return ddl.DataType("map", parts=(_type(kind.keyType), _type(kind.valueType)))
    return ddl.DataType(kind.simpleString())
