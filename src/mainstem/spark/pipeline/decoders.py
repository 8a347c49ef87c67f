"""What Spark's workers do to values that Spark has no decoder for without further jars: Avro and Protobuf.

A decoder takes an Arrow array of bytes and gives a struct array: the decoded row, and the reason where a
value is not what the schema says. A bad value never fails its batch. No Spark here, so it is tested
without.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from mainstem.spark.pipeline import protobuf_schema
from mainstem.spark.pipeline.model import Decode
from mainstem.spark.pipeline.schemas.arrow_types import struct_type
from mainstem.spark.pipeline.schemas.ddl import Schema
from mainstem.spark.pipeline.schemas.definitions import Definition

CONFLUENT_HEADER_BYTES = 5


class NotDecodable(ValueError):
    """This value is not what the schema says."""


class Decoder:
    """Decodes whole Arrow arrays. It travels to the workers, and makes what cannot travel at its first
    use."""

    def __init__(self, decode: Decode, definition: Definition) -> None:
        self._format = decode.format
        self._message = decode.message
        self._is_framed = decode.framing == "confluent"
        self._columns: Schema = definition.columns
        self._avro = definition.avro
        self._descriptors = definition.descriptors
        self._row: Callable[[bytes], dict[str, Any]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_row": None}

    def __call__(self, values: Any) -> Any:
        import pyarrow as pa

        if self._row is None:
            self._row = self._avro_rows() if self._format == "avro" else self._protobuf_rows()
        rows: list[dict[str, Any] | None] = []
        reasons: list[str | None] = []
        for value in values:
            row, reason = self._one(value.as_py())
            rows.append(row)
            reasons.append(reason)
        kind = struct_type(self._columns)
        try:
            decoded = pa.array(rows, kind)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            decoded = self._one_by_one(rows, reasons, kind)
        return pa.StructArray.from_arrays([decoded, pa.array(reasons, pa.string())], names=["row", "reason"])

    def _one(self, value: bytes | None) -> tuple[dict[str, Any] | None, str | None]:
        if value is None:
            return None, None
        assert self._row is not None
        try:
            return self._row(self._payload(value)), None
        except Exception as error:  # whatever a codec raises on hostile bytes
            return None, f"not {self._format.capitalize()} of this schema: {_brief(error)}"

    def _payload(self, value: bytes) -> bytes:
        if not self._is_framed:
            return value
        if len(value) < CONFLUENT_HEADER_BYTES or value[0] != 0:
            raise NotDecodable("it does not start with a zero byte and a schema id")
        if self._format == "avro":
            return value[CONFLUENT_HEADER_BYTES:]
        return value[_after_message_indexes(value) :]

    def _one_by_one(self, rows: list[dict[str, Any] | None], reasons: list[str | None], kind: Any) -> Any:
        """Some row does not fit its type (a decimal of too many digits): find it, keep the others."""
        import pyarrow as pa

        for index, row in enumerate(rows):
            try:
                pa.array([row], kind)
            except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
                rows[index] = None
                reasons[index] = f"a value does not fit its column: {_brief(error)}"
        return pa.array(rows, kind)

    def _avro_rows(self) -> Callable[[bytes], dict[str, Any]]:
        import fastavro

        schema = fastavro.parse_schema(json.loads(self._avro or ""))

        def row(payload: bytes) -> dict[str, Any]:
            stream = io.BytesIO(payload)
            try:
                found: Any = fastavro.schemaless_reader(stream, schema, None)
            except (EOFError, IndexError, UnicodeDecodeError) as error:
                raise NotDecodable(_avro_reason(error)) from None
            left = len(payload) - stream.tell()
            if left:
                raise NotDecodable(f"{left} bytes are left over")
            return dict(found)

        return row

    def _protobuf_rows(self) -> Callable[[bytes], dict[str, Any]]:
        message = protobuf_schema.message_class(self._descriptors or b"", self._message)
        make = protobuf_schema.row_maker(message.DESCRIPTOR)
        return lambda payload: make(message.FromString(payload))


class AvroEncoder:
    """Encodes an Arrow struct array as Avro; a row that does not fit the schema fails with the column's
    name."""

    def __init__(self, schema: str) -> None:
        self._text = schema
        self._schema: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_schema": None}

    def __call__(self, rows: Any) -> Any:
        import fastavro
        import pyarrow as pa

        if self._schema is None:
            self._schema = fastavro.parse_schema(json.loads(self._text))
        encoded = []
        for row in rows:
            stream = io.BytesIO()
            fastavro.schemaless_writer(stream, self._schema, row.as_py(maps_as_pydicts="strict"))
            encoded.append(stream.getvalue())
        return pa.array(encoded, pa.binary())


def _avro_reason(error: Exception) -> str:
    """What fastavro's errors, which are those of Python, mean."""
    if isinstance(error, UnicodeDecodeError):
        return "a text in it is not UTF-8"
    if isinstance(error, EOFError) and "Expected -" in str(error):
        return "a length in it is negative"
    # An end within a text is told as an index of that text.
    if isinstance(error, EOFError) or "string index" in str(error):
        return "the record ends too early"
    return "it has a branch of a union or a symbol of an enum that the schema does not have"


def _after_message_indexes(value: bytes) -> int:
    """Behind the schema id of framed Protobuf stand the indexes of the message, as zigzag varints."""
    position = CONFLUENT_HEADER_BYTES
    count, position = _zigzag(value, position)
    for _ in range(count):
        _, position = _zigzag(value, position)
    return position


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


def _brief(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
