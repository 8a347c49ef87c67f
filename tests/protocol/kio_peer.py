"""The peer codec: kio's classes for our messages, its reader and writer, and its values in our terms.

kio aborts the process on bytes that are not valid, so that only well-formed messages may be given to it.
"""

import datetime
import enum
import importlib
import io
import uuid
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_args

from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer

from mainstem.protocol.layout import Array, Field, Nested, StructLayout, WireType
from mainstem.protocol.schema import ApiMessage
from tests.protocol.messages import OWN_TAGS

EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)
MILLISECOND = datetime.timedelta(milliseconds=1)
# kio turns these into date and duration objects, which hold less than 64 bits.
NARROW_TYPES = {"datetime_i64": (0, 4_102_444_800_000), "timedelta_i64": (-(2**40), 2**40)}


def peer_class(cls: type, version: int) -> type | None:
    """kio's class for a message, or None when kio does not know that API or version."""
    schema: ApiMessage = cls.SCHEMA  # type: ignore[attr-defined]
    package = api_key_map.get(schema.api_key)
    try:
        module = importlib.import_module(f"kio.schema.{package}.v{version}.{schema.kind}")
    except ImportError:
        return None
    found: type = getattr(module, cls.__name__)
    return found


def peer_decode(peer: type, data: bytes) -> tuple[Any, int]:
    decoded: tuple[Any, int] = entity_reader(peer)(data, 0)
    return decoded


def peer_encode(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def narrow_fields(layout: StructLayout, peer: type) -> Iterator[tuple[tuple[str, str], tuple[int, int]]]:
    """The integer fields for which kio takes only a part of the wire type's range."""
    for field, peer_field in paired_fields(layout, peer):
        kind = peer_field.metadata.get("kafka_type")
        if kind in NARROW_TYPES:
            yield (layout.cls.__name__, field.name), NARROW_TYPES[kind]
        inner = field.type.element if isinstance(field.type, Array) else field.type
        if isinstance(inner, Nested):
            yield from narrow_fields(inner.layout, innermost_type(peer_field.type))


def is_own(field: Field) -> bool:
    """Whether a field is Mainstem's own: no other codec knows it."""
    return field.tag is not None and field.tag >= OWN_TAGS


def paired_fields(layout: StructLayout, peer: type) -> list[tuple[Field, Any]]:
    """Our fields beside kio's. Both follow the order of Kafka's schemas, and kio drops the unit of a name,
    and sets names of builtins apart.
    """
    ours = [field for field in layout.fields if field.present and not is_own(field)]
    pairs = list(zip(ours, fields(peer), strict=True))
    assert all(a.name in (b.name.rstrip("_"), b.name + "_ms") for a, b in pairs), (
        f"{layout.cls} differs from {peer}"
    )
    return pairs


def innermost_type(hint: Any) -> Any:
    while arguments := [arg for arg in get_args(hint) if arg not in (type(None), Ellipsis)]:
        (hint,) = arguments
    return hint


def as_plain(layout: StructLayout, message: Any) -> list[Any]:
    """Our message as nested lists of plain values, fields in order, absent ones left out."""
    return [
        _ours(field, field.type, getattr(message, field.name))
        for field in layout.fields
        if field.present and not is_own(field)
    ]


def peer_as_plain(layout: StructLayout, entity: Any) -> list[Any]:
    """kio's message in the same form."""
    pairs = paired_fields(layout, type(entity))
    return [_theirs(field.type, getattr(entity, peer_field.name)) for field, peer_field in pairs]


def _ours(field: Field, wire_type: WireType, value: Any) -> Any:
    match wire_type:
        case Array(element) if value is not None:
            return [_ours(field, element, item) for item in value]
        case Nested(layout) if value is not None or field.tag is not None:
            # A tagged struct that was not sent is None here and the struct of defaults there.
            return as_plain(layout, value if value is not None else layout.cls())
    return value


def _theirs(wire_type: WireType, value: Any) -> Any:
    match wire_type:
        case Array(element) if value is not None:
            return [_theirs(element, item) for item in value]
        case Nested(layout) if value is not None:
            return peer_as_plain(layout, value)
        case Array() | Nested():
            return value
    return _plain(wire_type.name, value)


def _plain(wire_name: str, value: Any) -> Any:
    if value is None:
        return {"uuid": bytes(16), "int64": -1}.get(wire_name)
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime.timedelta):
        return round(value / MILLISECOND)
    if isinstance(value, datetime.datetime):
        return round((value - EPOCH) / MILLISECOND)
    return value
