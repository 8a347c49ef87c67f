"""Protobuf values become rows; bad ones become reasons, and never fail their batch."""

import datetime
import pickle
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2

from mainstem.spark.pipeline import Decode
from mainstem.spark.pipeline.formats.protobuf import ProtobufDecoder, message_class
from mainstem.spark.pipeline.schemas import ddl
from mainstem.spark.pipeline.schemas.definitions import SchemaError

AT = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)


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
    (tmp_path / "shop.desc").write_bytes(_descriptors())
    decode = Decode(format="protobuf", schema_file="shop.desc", message="shop.Order")
    found = decode.definition(tmp_path)
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
    decoder = pickle.loads(pickle.dumps(ProtobufDecoder(decode, found)))
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
    found = decode.definition(tmp_path)
    assert found is not None
    values = [
        b"\x00\x00\x00\x00\x01\x00\x08\x05",
        b"\x00\x00\x00\x00\x01\x04\x00\x02\x08\x06",
        b"\x00\x00\x00\x00\x01",
    ]
    decoded = ProtobufDecoder(decode, found)(pa.array(values, pa.binary())).to_pylist()
    assert [entry["row"] and entry["row"]["id"] for entry in decoded] == [5, 6, None]


def test_wrong_descriptors_are_told(tmp_path: Path) -> None:
    (tmp_path / "shop.desc").write_bytes(_descriptors())
    (tmp_path / "none.desc").write_bytes(b"nonsense")
    with pytest.raises(SchemaError, match=r"there is no message shop\.Oder in it") as caught:
        Decode(format="protobuf", schema_file="shop.desc", message="shop.Oder").definition(tmp_path)
    assert caught.value.hint == "did you mean shop.Order?"
    with pytest.raises(SchemaError, match="this is no Protobuf descriptor set"):
        Decode(format="protobuf", schema_file="none.desc").definition(tmp_path)
