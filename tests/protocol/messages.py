"""Random messages for any declared schema, and plain values of messages for comparison with a peer codec.

Values are drawn from a seeded generator so that a failure can be repeated. The lengths are chosen around the
places where encodings change: empty, one byte, the step from one to two bytes of a compact length.
"""

import random
from collections.abc import Iterator
from typing import Any

from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.layout import Array, Field, Nested, StructLayout, WireType
from mainstem.protocol.registry import API_KEYS, request_class, response_class
from mainstem.protocol.schema import Wire

TEXTS = ("", "a", "topic-1", "zwölf Ärzte ☃", "x" * 126, "y" * 127, "z" * 128, "\N{GRINNING FACE}" * 40)
INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32}


def all_messages() -> Iterator[tuple[type, list[int]]]:
    """Every declared request and response with its versions."""
    for info in API_KEYS.values():
        versions = list(range(info.min_version, info.max_version + 1))
        yield request_class(info.key), versions
        yield response_class(info.key), versions


OWN_TAGS = 10_000


class MessageFactory:
    """Fills structs with random values; fields of a version that lacks them keep their defaults."""

    def __init__(
        self,
        seed: str,
        limits: dict[tuple[str, str], tuple[int, int]] | None = None,
        own_fields: bool = True,
    ) -> None:
        self.random = random.Random(seed)
        # Whether the fields with Mainstem's own tags get values, which no other codec knows.
        self.own_fields = own_fields
        # Ranges by (struct, field) that are narrower than the wire type, where the peer demands it.
        self.limits = limits or {}

    def struct(self, layout: StructLayout) -> Any:
        present = (field for field in layout.fields if field.present)
        return layout.cls(**{field.name: self.field(layout, field) for field in present})

    def field(self, layout: StructLayout, field: Field) -> Any:
        if field.tag is not None and field.tag >= OWN_TAGS and not self.own_fields:
            return getattr(layout.cls(), field.name)
        if field.nullable and self.random.random() < 0.3:
            return None
        if field.tag is not None and self.random.random() < 0.3:
            return None if isinstance(field.type, Nested) else getattr(layout.cls(), field.name)
        if limits := self.limits.get((layout.cls.__name__, field.name)):
            return self.random.randint(*limits)
        value = self.value(field.type, field.name)
        if field.tag is not None and isinstance(field.type, Nested) and value == field.type.layout.cls():
            return None
        return value

    def value(self, wire_type: WireType, name: str) -> Any:
        match wire_type:
            case Array(element):
                return [self.value(element, name) for _ in range(self.count(element))]
            case Nested(layout):
                return self.struct(layout)
            case Wire(name="string"):
                return self.random.choice(TEXTS)
            case Wire(name="bytes" | "records"):
                return self.random.randbytes(self.random.choice((0, 1, 5, 126, 127, 128, 20_000)))
            case Wire(name="uuid"):
                return self.random.choice((bytes(16), self.random.randbytes(16)))
            case Wire(name="bool"):
                return self.random.random() < 0.5
            case Wire(name="float64"):
                return self.random.choice((0.0, -1.5, 1e300, self.random.random()))
            case Wire(name=kind):
                return self.integer(kind, name)

    def integer(self, kind: str, name: str) -> int:
        if name.endswith("error_code") and kind == "int16":
            return int(self.random.choice(list(ErrorCode)))
        bits = INTEGER_BITS[kind]
        low = 0 if kind.startswith("u") else -(1 << (bits - 1))
        high = low + (1 << bits) - 1
        return self.random.choice((low, high, 0, 1, self.random.randint(low, high)))

    def count(self, element: WireType) -> int:
        if isinstance(element, Nested):
            return self.random.choice((0, 1, 1, 2))
        return self.random.choice((0, 1, 2, 3, 127))
