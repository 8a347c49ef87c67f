"""Avro values become rows, bad ones become reasons and never fail their batch; rows become Avro values where
their columns fit the schema."""

import datetime
import io
import json
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from mainstem.spark.pipeline import Decode
from mainstem.spark.pipeline.formats.avro import AvroDecoder, AvroEncoder, columns_of, misfits
from mainstem.spark.pipeline.schemas import ddl
from mainstem.spark.pipeline.schemas.definitions import Definition, SchemaError

AVRO = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "other", "type": ["null", "Kind"]},
        {"name": "counts", "type": {"type": "map", "values": ["int", "long"]}},
    ],
}
AT = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
ROW = {
    "id": 7,
    "name": None,
    "price": Decimal("12.50"),
    "at": AT,
    "kind": "A",
    "tags": ["x"],
    "other": "B",
    "counts": {"a": 1},
}


def _avro(row: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(AVRO), row)
    return stream.getvalue()


def _avro_decoder(framing: Any = "none") -> AvroDecoder:
    decode = Decode(format="avro", schema=json.dumps(AVRO), framing=framing)
    found = decode.definition(Path())
    assert found is not None
    return AvroDecoder(decode, found)


def test_the_columns_of_an_avro_schema() -> None:
    found = Decode(format="avro", schema=json.dumps(AVRO)).definition(Path())
    assert found is not None
    assert ddl.render(found.columns) == (
        "id BIGINT NOT NULL, name STRING, price DECIMAL(6,2) NOT NULL, at TIMESTAMP NOT NULL, "
        "kind STRING NOT NULL, tags ARRAY<STRING> NOT NULL, other STRING, counts MAP<STRING, BIGINT> NOT NULL"
    )


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "lng"}]}, "this is no Avro schema"),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["int", "string"]}]},
            "does not fit a column",
        ),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "R"]}]},
            "the record R contains itself",
        ),
    ],
)
def test_avro_schemas_that_do_not_fit_columns(schema: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Decode(format="avro", schema=json.dumps(schema)).definition(Path())


def test_avro_values_and_bad_ones_between_them() -> None:
    decoder = pickle.loads(pickle.dumps(_avro_decoder()))
    good = _avro(ROW)
    decoded = decoder(pa.array([good, b"\xff\xff", good[:-1], good + b"xx", None], pa.binary())).to_pylist()
    assert decoded[0]["row"] == ROW | {"counts": [("a", 1)]}
    assert [entry["reason"] is None for entry in decoded] == [True, False, False, False, True]
    assert decoded[3]["reason"] == "not Avro of this schema: 2 bytes are left over"
    assert decoded[4] == {"row": None, "reason": None}


def test_the_reason_says_what_is_wrong_with_avro() -> None:
    good = _avro(ROW)
    # Behind the number is the name's branch, then its length: no such branch, minus one, a bad letter.
    values = [
        b"",
        good[:1],
        good[:-1],
        good[:1] + b"\x08",
        good[:1] + b"\x02\x01",
        good[:1] + b"\x02\x02\xff",
    ]
    reasons = [entry["reason"] for entry in _avro_decoder()(pa.array(values, pa.binary())).to_pylist()]
    assert {reason.partition(": ")[0] for reason in reasons} == {"not Avro of this schema"}
    assert [reason.partition(": ")[2] for reason in reasons] == [
        *["the record ends too early"] * 3,
        "it has a branch of a union or a symbol of an enum that the schema does not have",
        "a length in it is negative",
        "a text in it is not UTF-8",
    ]


def test_framed_avro_skips_the_schema_id() -> None:
    values = pa.array([b"\x00\x00\x00\x00\x07" + _avro(ROW), _avro(ROW), b"\x00"], pa.binary())
    decoded = _avro_decoder("confluent")(values).to_pylist()
    assert decoded[0]["row"]["id"] == 7
    assert "it does not start with a zero byte and a schema id" in decoded[1]["reason"]
    assert decoded[2]["row"] is None


def test_a_value_that_does_not_fit_its_column_keeps_the_others() -> None:
    columns = ddl.parse("id INT")
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
    decoder = AvroDecoder(Decode(format="avro"), Definition(columns, json.dumps(schema)))
    small, large = io.BytesIO(), io.BytesIO()
    fastavro.schemaless_writer(small, fastavro.parse_schema(schema), {"id": 1})
    fastavro.schemaless_writer(large, fastavro.parse_schema(schema), {"id": 2**40})
    decoded = decoder(pa.array([small.getvalue(), large.getvalue()], pa.binary())).to_pylist()
    assert decoded[0]["row"] == {"id": 1}
    assert decoded[1]["row"] is None
    assert "a value does not fit its column" in decoded[1]["reason"]


def test_rows_are_written_as_avro() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
    encoder = pickle.loads(pickle.dumps(AvroEncoder(json.dumps(schema))))
    (value,) = encoder(pa.array([{"id": 5}])).to_pylist()
    assert fastavro.schemaless_reader(io.BytesIO(value), schema, None) == {"id": 5}


def test_maps_are_written_as_avro() -> None:
    counts = {"name": "counts", "type": {"type": "map", "values": "long"}}
    schema = {"type": "record", "name": "R", "fields": [counts]}
    rows = pa.array([{"counts": [("a", 1)]}], pa.struct([("counts", pa.map_(pa.string(), pa.int64()))]))
    (value,) = AvroEncoder(json.dumps(schema))(rows).to_pylist()
    assert fastavro.schemaless_reader(io.BytesIO(value), schema, None) == {"counts": {"a": 1}}


def found(given: str, *fields: dict[str, Any]) -> list[str]:
    schema = json.dumps({"type": "record", "name": "R", "fields": list(fields)})
    return [f"{misfit.message} -> {misfit.hint}" for misfit in misfits(ddl.parse(given), columns_of(schema))]


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
