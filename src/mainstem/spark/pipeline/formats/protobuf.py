"""Protobuf: one message in each value, or behind the frame of a schema registry.

The descriptor set is what `protoc --include_imports --descriptor_set_out=FILE` writes; no generated code is
needed.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from mainstem.spark.pipeline.formats.arrow_decoding import ArrowFormat, Decoder, NotDecodable, Row
from mainstem.spark.pipeline.problems import did_you_mean
from mainstem.spark.pipeline.schemas.ddl import Column, DataType, Schema, simple
from mainstem.spark.pipeline.schemas.definitions import Definition, SchemaError, read_bytes

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from mainstem.spark.pipeline.sources.decode import Decode

_PROTOC = "make one with: protoc --include_imports --descriptor_set_out=FILE x.proto"


class ProtobufDecoder(Decoder):
    """Rows of Protobuf messages."""

    NAME = "Protobuf"

    def rows(self) -> Callable[[bytes], Row]:
        assert isinstance(self.schema, bytes)
        message = message_class(self.schema, self.message)
        make = _row_maker(message.DESCRIPTOR)
        return lambda payload: make(message.FromString(payload))

    def start_of_payload(self, value: bytes, position: int) -> int:
        """Behind the schema id of framed Protobuf stand the indexes of the message, as zigzag varints."""
        count, position = _zigzag(value, position)
        for _ in range(count):
            _, position = _zigzag(value, position)
        return position


class Protobuf(ArrowFormat):
    KIND = "protobuf"
    HAS_MESSAGES = True
    DECODER = ProtobufDecoder

    @property
    def missing_schema(self) -> tuple[str, str]:
        return "protobuf needs schema_file, a descriptor set", _PROTOC

    def definition(self, decode: Decode, folder: FilePath) -> Definition:
        if decode.schema_file is None:
            message, hint = self.missing_schema
            raise SchemaError(message, "format", hint)
        descriptors = read_bytes(decode.schema_file, folder, "schema_file")
        try:
            found = message_class(descriptors, decode.message)
            return Definition(_columns(found.DESCRIPTOR), descriptors)
        except ProtobufSchemaError as error:
            field = "message" if decode.message is not None and "message" in str(error) else "schema_file"
            raise SchemaError(str(error), field, error.hint) from None


# By FieldDescriptor.type.
_SCALARS = {
    1: "double",
    2: "float",
    3: "bigint",
    4: "decimal(20,0)",
    5: "int",
    6: "decimal(20,0)",
    7: "bigint",
    8: "boolean",
    9: "string",
    12: "binary",
    13: "bigint",
    14: "string",
    15: "int",
    16: "bigint",
    17: "int",
    18: "bigint",
}
_MESSAGE_TYPES = (10, 11)
_ENUM_TYPE = 14
_UNSIGNED_64 = (4, 6)
_TIMESTAMP = "google.protobuf.Timestamp"
_WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


class ProtobufSchemaError(ValueError):
    """The descriptor set cannot be read, or lacks the message."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def message_class(descriptors: bytes, message: str | None) -> Any:
    """The class of a message by the descriptor set; its only message when none is named."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.message import DecodeError

    try:
        found = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
    except DecodeError:
        found = descriptor_pb2.FileDescriptorSet()
    if not found.file:
        raise ProtobufSchemaError(
            "this is no Protobuf descriptor set",
            _PROTOC,
        )
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in found.file:
            pool.Add(file)
        names = [
            f"{file.package}.{item.name}" if file.package else item.name
            for file in found.file
            if not file.package.startswith("google.protobuf")
            for item in file.message_type
        ]
        if message is None:
            if len(names) != 1:
                raise ProtobufSchemaError("several messages are in it: say which", f"message: {names[0]}")
            message = names[0]
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(message))
    except KeyError:
        hint = did_you_mean(str(message), names, "there are")
        raise ProtobufSchemaError(f"there is no message {message} in it", hint) from None
    except TypeError as error:
        raise ProtobufSchemaError(
            f"the descriptor set is not complete: {error}", "give protoc the option --include_imports"
        ) from None


def _columns(descriptor: Any, inside: tuple[str, ...] = ()) -> Schema:
    """The columns of a message."""
    if descriptor.full_name in inside:
        raise ProtobufSchemaError(f"the message {descriptor.full_name} contains itself; columns cannot")
    inside = (*inside, descriptor.full_name)
    return tuple(Column(field.name, _field_type(field, inside)) for field in descriptor.fields)


def _is_map(field: Any) -> bool:
    return field.type == 11 and bool(field.message_type.GetOptions().map_entry)


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _field_type(field: Any, inside: tuple[str, ...]) -> DataType:
    if _is_map(field):
        entry = field.message_type.fields_by_name
        parts = tuple(_single_type(entry[name], inside) for name in ("key", "value"))
        return DataType("map", parts=parts)
    found = _single_type(field, inside)
    return DataType("array", parts=(found,)) if _is_repeated(field) else found


def _single_type(field: Any, inside: tuple[str, ...]) -> DataType:
    if field.type not in _MESSAGE_TYPES:
        return DataType(_SCALARS[field.type])
    name = field.message_type.full_name
    if name == _TIMESTAMP:
        return simple("timestamp")
    if name in _WRAPPERS:
        return _single_type(field.message_type.fields_by_name["value"], inside)
    return DataType("struct", fields=_columns(field.message_type, inside))


def _row_maker(descriptor: Any) -> Callable[[Any], Row]:
    """A function from a message to a row of its columns."""
    makers = [(field.name, _field_maker(field)) for field in descriptor.fields]

    def make(message: Any) -> Row:
        return {name: maker(message) for name, maker in makers}

    return make


def _field_maker(field: Any) -> Callable[[Any], Any]:
    name = field.name
    if _is_map(field):
        value_maker = _value_maker(field.message_type.fields_by_name["value"])
        return lambda message: [(key, value_maker(item)) for key, item in getattr(message, name).items()]
    maker = _value_maker(field)
    if _is_repeated(field):
        return lambda message: [maker(item) for item in getattr(message, name)]
    if field.has_presence:
        return lambda message: maker(getattr(message, name)) if message.HasField(name) else None
    return lambda message: maker(getattr(message, name))


def _value_maker(field: Any) -> Callable[[Any], Any]:
    if field.type == _ENUM_TYPE:
        by_number = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda value: by_number.get(value, str(value))
    if field.type in _UNSIGNED_64:
        return Decimal
    if field.type not in _MESSAGE_TYPES:
        return lambda value: value
    if field.message_type.full_name == _TIMESTAMP:
        return _timestamp
    if field.message_type.full_name in _WRAPPERS:
        inner = _value_maker(field.message_type.fields_by_name["value"])
        return lambda value: inner(value.value)
    return _row_maker(field.message_type)


def _timestamp(value: Any) -> datetime.datetime:
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return epoch + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)


def _zigzag(value: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if position >= len(value) or shift > 63:
            raise NotDecodable("the indexes of its message are cut off")
        byte = value[position]
        position += 1
        result |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), position
