"""Avro and Protobuf values become rows; bad ones become reasons, and never fail their batch."""

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
from google.protobuf import descriptor_pb2

from mainstem.spark.pipeline import Decode
from mainstem.spark.pipeline.decoders import AvroEncoder, Decoder
from mainstem.spark.pipeline.schemas import ddl
from mainstem.spark.pipeline.schemas.definitions import Definition, SchemaError, definition

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


def _avro_decoder(framing: Any = "none") -> Decoder:
    decode = Decode(format="avro", schema=json.dumps(AVRO), framing=framing)
    found = definition(decode, Path())
    assert found is not None
    return Decoder(decode, found)


def test_the_columns_of_an_avro_schema() -> None:
    found = definition(Decode(format="avro", schema=json.dumps(AVRO)), Path())
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
        definition(Decode(format="avro", schema=json.dumps(schema)), Path())


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
    decoder = Decoder(Decode(format="avro"), Definition(columns, avro=json.dumps(schema)))
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


def _descriptors() -> bytes:
    """What protoc would write for a small file, timestamps included."""
    from google.protobuf import timestamp_pb2, wrappers_pb2

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="shop.proto",
        package="shop",
        syntax="proto3",
        dependency=["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"],
    )
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="NONE", number=0)
    kind.value.add(name="BIG", number=1)
    order = file.message_type.add(name="Order")
    entry = order.nested_type.add(name="CountsEntry", options=descriptor_pb2.MessageOptions(map_entry=True))
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=kinds.TYPE_INT32, label=kinds.LABEL_OPTIONAL)
    for number, (name, field_type, type_name, label) in enumerate(
        [
            ("id", kinds.TYPE_INT64, None, kinds.LABEL_OPTIONAL),
            ("name", kinds.TYPE_STRING, None, kinds.LABEL_OPTIONAL),
            ("at", kinds.TYPE_MESSAGE, ".google.protobuf.Timestamp", kinds.LABEL_OPTIONAL),
            ("kind", kinds.TYPE_ENUM, ".shop.Kind", kinds.LABEL_OPTIONAL),
            ("tags", kinds.TYPE_STRING, None, kinds.LABEL_REPEATED),
            ("counts", kinds.TYPE_MESSAGE, ".shop.Order.CountsEntry", kinds.LABEL_REPEATED),
            ("huge", kinds.TYPE_UINT64, None, kinds.LABEL_OPTIONAL),
            ("note", kinds.TYPE_MESSAGE, ".google.protobuf.StringValue", kinds.LABEL_OPTIONAL),
        ],
        1,
    ):
        order.field.add(name=name, number=number, type=field_type, type_name=type_name, label=label)
    found = descriptor_pb2.FileDescriptorSet()
    for module in (timestamp_pb2, wrappers_pb2):
        module.DESCRIPTOR.CopyToProto(found.file.add())
    found.file.append(file)
    return found.SerializeToString()


def test_protobuf_values(tmp_path: Path) -> None:
    from mainstem.spark.pipeline.protobuf_schema import message_class

    (tmp_path / "shop.desc").write_bytes(_descriptors())
    decode = Decode(format="protobuf", schema_file="shop.desc", message="shop.Order")
    found = definition(decode, tmp_path)
    assert found is not None
    assert ddl.render(found.columns) == (
        "id BIGINT, name STRING, at TIMESTAMP, kind STRING, tags ARRAY<STRING>, counts MAP<STRING, INT>, "
        "huge DECIMAL(20,0), note STRING"
    )
    order = message_class(_descriptors(), "shop.Order")()
    order.id, order.kind, order.huge = 3, 1, 2**64 - 1
    order.at.FromDatetime(AT)
    order.tags.append("x")
    order.counts["a"] = 2
    decoder = pickle.loads(pickle.dumps(Decoder(decode, found)))
    decoded = decoder(pa.array([order.SerializeToString(), b"\xff", b""], pa.binary())).to_pylist()
    assert decoded[0]["row"] == {
        "id": 3,
        "name": "",
        "at": AT,
        "kind": "BIG",
        "tags": ["x"],
        "counts": [("a", 2)],
        "huge": Decimal(2**64 - 1),
        "note": None,
    }
    assert decoded[1]["reason"].startswith("not Protobuf of this schema")
    assert decoded[2]["row"]["at"] is None


def test_framed_protobuf_skips_the_indexes_of_its_message(tmp_path: Path) -> None:
    (tmp_path / "shop.desc").write_bytes(_descriptors())
    decode = Decode(format="protobuf", schema_file="shop.desc", framing="confluent")
    found = definition(decode, tmp_path)
    assert found is not None
    values = [
        b"\x00\x00\x00\x00\x01\x00\x08\x05",
        b"\x00\x00\x00\x00\x01\x04\x00\x02\x08\x06",
        b"\x00\x00\x00\x00\x01",
    ]
    decoded = Decoder(decode, found)(pa.array(values, pa.binary())).to_pylist()
    assert [entry["row"] and entry["row"]["id"] for entry in decoded] == [5, 6, None]


def test_wrong_descriptors_are_told(tmp_path: Path) -> None:
    (tmp_path / "shop.desc").write_bytes(_descriptors())
    (tmp_path / "none.desc").write_bytes(b"nonsense")
    with pytest.raises(SchemaError, match=r"there is no message shop\.Oder in it") as caught:
        definition(Decode(format="protobuf", schema_file="shop.desc", message="shop.Oder"), tmp_path)
    assert caught.value.hint == "did you mean shop.Order?"
    with pytest.raises(SchemaError, match="this is no Protobuf descriptor set"):
        definition(Decode(format="protobuf", schema_file="none.desc"), tmp_path)
