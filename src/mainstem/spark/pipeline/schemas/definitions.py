"""The columns that a source or a stateful step declares: from DDL, an Avro schema or a Protobuf
descriptor."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import NamedTuple

from mainstem.spark.pipeline import avro_schema, protobuf_schema
from mainstem.spark.pipeline.model import Decode, Metadata
from mainstem.spark.pipeline.schemas import ddl
from mainstem.spark.pipeline.schemas.ddl import DataType, Schema

# The columns of a record that is not decoded, as format("mainstem") gives them.
RAW = ddl.parse(
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
_RAW_TYPES: dict[str, DataType] = {column.name: column.type for column in RAW}


class SchemaError(ValueError):
    """No columns can be made of what is given; `field` is the key of `decode` at fault."""

    def __init__(
        self, message: str, field: str, hint: str | None = None, inside: tuple[int, int] | None = None
    ) -> None:
        super().__init__(message)
        self.field = field
        self.hint = hint
        self.inside = inside


class Definition(NamedTuple):
    """A schema as the decoders need it: its columns, and the text or bytes in which it was given."""

    columns: Schema
    avro: str | None = None
    descriptors: bytes | None = None


def definition(decode: Decode, folder: FilePath) -> Definition | None:
    """What `decode` says of its columns; None where they are to be inferred."""
    if decode.format == "raw":
        return Definition(RAW)
    if decode.format == "protobuf":
        return _protobuf(decode, folder)
    field = "schema" if decode.schema is not None else "schema_file"
    if decode.schema is not None:
        text = decode.schema
    elif decode.schema_file is not None:
        text = read_bytes(decode.schema_file, folder, field).decode("utf-8", "replace")
    else:
        return None
    if decode.format == "avro":
        try:
            return Definition(avro_schema.columns(text), avro=text)
        except avro_schema.AvroSchemaError as error:
            raise SchemaError(str(error), field) from None
    return Definition(parse_ddl(text, field))


def parse_ddl(text: str, field: str) -> Schema:
    """The columns of a DDL text, its error with the place in it."""
    try:
        return ddl.parse(text)
    except ddl.DdlError as error:
        before = text[: error.position]
        inside = (before.count("\n"), error.position - (before.rfind("\n") + 1))
        raise SchemaError(error.message, field, error.hint, inside if field == "schema" else None) from None


def with_metadata(columns: Schema, metadata: list[Metadata]) -> Schema:
    """The decoded columns and those for the facts of the record."""
    extra = tuple(ddl.Column(f"_{name}", _RAW_TYPES[name]) for name in metadata)
    return columns + extra


def read_bytes(name: str, folder: FilePath, field: str) -> bytes:
    """A file that a pipeline names, relative to the folder of the pipeline's file."""
    try:
        return (folder / FilePath(name).expanduser()).read_bytes()
    except OSError as error:
        raise SchemaError(f"{name} cannot be read: {(error.strerror or str(error)).lower()}", field) from None


def _protobuf(decode: Decode, folder: FilePath) -> Definition:
    if decode.schema_file is None:
        raise SchemaError(
            "protobuf needs schema_file, a descriptor set",
            "format",
            "make one with: protoc --include_imports --descriptor_set_out=FILE x.proto",
        )
    descriptors = read_bytes(decode.schema_file, folder, "schema_file")
    try:
        found = protobuf_schema.message_class(descriptors, decode.message)
        columns = protobuf_schema.columns(found.DESCRIPTOR)
    except protobuf_schema.ProtobufSchemaError as error:
        field = "message" if decode.message is not None and "message" in str(error) else "schema_file"
        raise SchemaError(str(error), field, error.hint) from None
    return Definition(columns, descriptors=descriptors)
