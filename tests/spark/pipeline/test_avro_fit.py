"""Columns are compared with the Avro schema that they are written with, name by name and type by type."""

import json
from typing import Any

import pytest

from mainstem.spark.pipeline.avro_fit import misfits
from mainstem.spark.pipeline.avro_schema import columns
from mainstem.spark.pipeline.schemas import ddl


def found(given: str, *fields: dict[str, Any]) -> list[str]:
    schema = json.dumps({"type": "record", "name": "R", "fields": list(fields)})
    return [f"{misfit.message} -> {misfit.hint}" for misfit in misfits(ddl.parse(given), columns(schema))]


def field(kind: Any, name: str = "a", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def logical(kind: str, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("BOOLEAN", "boolean"),
        ("SMALLINT", "int"),
        ("INT", "long"),
        ("BIGINT", ["null", "long"]),
        ("BIGINT", "double"),
        ("FLOAT", "double"),
        ("STRING", "string"),
        ("VARCHAR(5)", "string"),
        ("STRING", {"type": "enum", "name": "E", "symbols": ["x"]}),
        ("BINARY", "bytes"),
        ("BINARY", {"type": "fixed", "name": "F", "size": 3}),
        ("DATE", logical("int", "date")),
        ("TIMESTAMP", logical("long", "timestamp-millis")),
        ("BIGINT", logical("long", "timestamp-micros")),
        ("TIMESTAMP_NTZ", logical("long", "local-timestamp-micros")),
        ("DECIMAL(5,2)", logical("bytes", "decimal", precision=6, scale=2)),
        ("ARRAY<INT>", {"type": "array", "items": "long"}),
        ("MAP<STRING, INT>", {"type": "map", "values": "int"}),
        ("STRUCT<b: INT>", {"type": "record", "name": "B", "fields": [field("int", "b")]}),
    ],
)
def test_types_that_fit(column: str, kind: Any) -> None:
    assert found(f"a {column}", field(kind)) == []


@pytest.mark.parametrize(
    ("column", "kind", "wanted"),
    [
        ("BIGINT", "int", "INT"),
        ("DOUBLE", "float", "FLOAT"),
        ("DOUBLE", "long", "BIGINT"),
        ("STRING", "boolean", "BOOLEAN"),
        ("STRING", "long", "BIGINT"),
        ("STRING", "bytes", "BINARY"),
        ("BIGINT", "string", "STRING"),
        ("TIMESTAMP", "string", "STRING"),
        ("TIMESTAMP_NTZ", logical("long", "timestamp-millis"), "TIMESTAMP"),
        ("DECIMAL(7,2)", logical("bytes", "decimal", precision=6, scale=2), "DECIMAL(6,2)"),
        ("DECIMAL(6,3)", logical("bytes", "decimal", precision=6, scale=2), "DECIMAL(6,2)"),
        ("DOUBLE", logical("bytes", "decimal", precision=6, scale=2), "DECIMAL(6,2)"),
    ],
)
def test_types_that_do_not_fit(column: str, kind: Any, wanted: str) -> None:
    assert found(f"a {column}", field(kind)) == [
        f"the column a is {column}, which the schema's {wanted} does not take -> "
        f"write CAST(a AS {wanted}) AS a, or change the schema"
    ]


def test_a_list_is_no_text_and_its_elements_are_compared() -> None:
    items = {"type": "array", "items": "int"}
    (problem,) = found("a STRING", field(items))
    assert "the column a is STRING, which the schema's ARRAY<INT> does not take" in problem
    (problem,) = found("a ARRAY<STRING>", field(items))
    assert "the column a.element is STRING, which the schema's INT does not take" in problem


def test_a_field_without_a_default_needs_a_column() -> None:
    assert found("a INT", field("int"), field("int", "b", default=1)) == []
    (problem,) = found("a INT", field("int"), field(["null", "int"], "b"))
    assert problem.startswith("the schema's field b has no default, and no column has its name")
    assert problem.endswith("add the column to the view, or give the field a default")


def test_a_column_without_a_field_is_told_with_the_name_that_may_be_meant() -> None:
    missing, extra = found("product_id INT", field("int", "productid"))
    assert "did you mean product_id? write product_id AS productid" in missing
    assert "the schema has no field for the column product_id: it would not be written" in extra
    assert "did you mean productid?" in extra
    missing, _ = found("ID INT", field("int", "id"))
    assert "write ID AS id: Avro's names have their case" in missing


def test_records_within_records_are_compared() -> None:
    inner = {"type": "record", "name": "B", "fields": [field("int", "b"), field("int", "c")]}
    missing, extra = found("a STRUCT<b: INT, unlike: INT>", field(inner))
    assert "the schema's field a.c has no default" in missing
    assert "no field for the column a.unlike" in extra
