"""Generates the source of an encoder for one message, version and layout.

The generated function walks the message once and collects byte strings, which are joined at the end;
fixed-size fields, length prefixes and empty tag sections that follow each other are packed by one `pack`.
Records are never copied: they stay chunks of their own between joined ones, so that a file range can be
sent by the kernel. A field that the version lacks is left out, whatever it holds.
"""

from collections.abc import Callable
from struct import error as struct_error
from struct import pack
from typing import Any

from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.layout import Array, Field, Nested, StructLayout, WireType
from mainstem.protocol.primitives import write_uvarint
from mainstem.protocol.schema import RecordsLike, Wire
from mainstem.protocol.source import SourceWriter, literal

Chunk = bytes | bytearray | memoryview | RecordsLike
Encoder = Callable[[Any], list[Chunk]]


def compile_encoder(layout: StructLayout, version: int) -> Encoder:
    title = f"{layout.cls.__name__} v{version}"
    generator = _EncoderGenerator(layout.flexible, title)
    generator.message(layout)
    encoder: Encoder = generator.writer.compile(f"encoder of {title}", "encode")
    return encoder


_RUNTIME = {
    "ProtocolError": ProtocolError,
    "buffers": (bytes, bytearray, memoryview),
    "join": b"".join,
    "null_marker": b"\xff",
    "pack": pack,
    "single_bytes": tuple(bytes((n,)) for n in range(128)),
    "struct_error": struct_error,
    "write_uvarint": write_uvarint,
}


class _EncoderGenerator:
    def __init__(self, flexible: bool, title: str) -> None:
        self.writer = SourceWriter()
        self.writer.namespace.update(_RUNTIME)
        self.flexible = flexible
        self.title = title
        # What follows each other until the next flush: a struct format and, unless it is padding, a value.
        self.pending: list[tuple[str, str]] = []
        self.append = "append"

    def message(self, layout: StructLayout) -> None:
        w = self.writer
        with w.block("def encode(message):"):
            w.line("parts = []")
            w.line("chunks = []")
            w.line("append = parts.append")
            with w.block("try:"):
                self.struct(layout, "message")
                self.flush()
            with w.block("except (struct_error, AttributeError, TypeError) as exc:"):
                w.line(f"raise ProtocolError('{self.title} cannot be written: {{}}'.format(exc)) from exc")
            with w.block("if parts:"):
                w.line("chunks.append(join(parts))")
            w.line("return chunks")

    def flush(self) -> None:
        """Write the fixed-size values that have been handed in since the last flush, in one go."""
        if self.pending:
            self.writer.line(f"{self.append}({self._packed(self.pending)})")
            self.pending.clear()

    def flush_with_uvarint(self, name: str) -> None:
        """The same with a varint behind them, which joins them while it fits one byte."""
        w = self.writer
        if not self.pending:
            w.line(f"{self.append}(single_bytes[{name}] if {name} < 128 else write_uvarint({name}))")
            return
        with w.block(f"if {name} < 128:"):
            w.line(f"{self.append}({self._packed([*self.pending, ('B', name)])})")
        with w.block("else:"):
            w.line(f"{self.append}({self._packed(self.pending)})")
            w.line(f"{self.append}(write_uvarint({name}))")
        self.pending.clear()

    def _packed(self, pieces: list[tuple[str, str]]) -> str:
        struct_format = "".join(form for form, _ in pieces)
        if struct_format.strip("x") == "":
            return repr(bytes(len(struct_format)))
        function, _ = self.writer.bind_struct("pack", struct_format)
        return f"{function}({', '.join(value for _, value in pieces if value)})"

    def struct(self, layout: StructLayout, owner: str) -> None:
        for field in layout.plain_fields:
            self.value(field.type, field.nullable, f"{owner}.{field.name}")
        if not self.flexible:
            return
        if layout.tagged_fields:
            self.tags(layout.tagged_fields, owner)
        else:
            self.pending.append(("x", ""))

    def tags(self, fields: list[Field], owner: str) -> None:
        w = self.writer
        names = [w.fresh("t") for _ in fields]
        for field, name in zip(fields, names, strict=True):
            w.line(f"{name} = {owner}.{field.name}")
        conditions = [self._differs(field, name) for field, name in zip(fields, names, strict=True)]
        count = w.fresh("count")
        w.line(f"{count} = {' + '.join(conditions)}")
        self.pending.append(("B", count))
        self.flush()
        with w.block(f"if {count}:"):
            for field, name, condition in zip(fields, names, conditions, strict=True):
                with w.block(f"if {condition}:"):
                    self.tagged_value(field, name)

    def _differs(self, field: Field, name: str) -> str:
        """The condition under which a tagged field is sent: it is not what the reader assumes without it."""
        if field.default is None and isinstance(field.type, Nested):
            default = self.writer.bind("default_", field.type.layout.cls())
            return f"({name} is not None and {name} != {default})"
        if field.default is None:
            return f"({name} is not None)"
        if isinstance(field.type, Array):
            return f"(len({name}) != 0)"
        return f"({name} != {literal(self.writer, field.default)})"

    def tagged_value(self, field: Field, name: str) -> None:
        w = self.writer
        outer = self.append
        parts, self.append = w.fresh("parts"), w.fresh("append")
        w.line(f"{parts} = []")
        w.line(f"{self.append} = {parts}.append")
        self.value(field.type, field.nullable, name)
        self.flush()
        self.append = outer
        w.line(f"{parts} = join({parts})")
        w.line(f"{outer}({write_uvarint(field.tag or 0)!r} + write_uvarint(len({parts})) + {parts})")

    def value(self, wire_type: WireType, nullable: bool, expression: str) -> None:
        match wire_type:
            case Array(element):
                self.array(element, nullable, expression)
            case Nested(layout):
                self.nested(layout, nullable, expression)
            case Wire(struct_format=struct_format) if struct_format:
                self.pending.append((struct_format, expression))
            case Wire(name="string"):
                self.bytes_like("h", ".encode()", nullable, expression)
            case Wire(name="bytes"):
                self.bytes_like("i", "", nullable, expression)
            case Wire(name="records"):
                self.records(nullable, expression)
            case _:
                raise TypeError(f"no encoder for {wire_type!r}")

    def local(self, stem: str, expression: str) -> str:
        """A local name for an expression; one that is a name already stays as it is."""
        if expression.isidentifier():
            return expression
        name = self.writer.fresh(stem)
        self.writer.line(f"{name} = {expression}")
        return name

    def length(self, struct_format: str, value: str, nullable: bool, measure: str) -> str:
        """Emit the length of a value, with null as Kafka counts it; returns the name that holds it."""
        name = self.writer.fresh("n")
        extra = " + 1" if self.flexible else ""
        null = f"{0 if self.flexible else -1} if {value} is None else " if nullable else ""
        self.writer.line(f"{name} = {null}{measure}{extra}")
        if self.flexible:
            self.flush_with_uvarint(name)
        else:
            self.pending.append((struct_format, name))
            self.flush()
        return name

    def bytes_like(self, struct_format: str, convert: str, nullable: bool, expression: str) -> None:
        w = self.writer
        value = w.fresh("v")
        if nullable:
            w.line(f"{value} = {expression}")
            with w.block(f"if {value} is not None:"):
                w.line(f"{value} = {value}{convert}")
        else:
            w.line(f"{value} = {expression}{convert}")
        length = self.length(struct_format, value, nullable, f"len({value})")
        if nullable:
            with w.block(f"if {length} > 0:"):
                w.line(f"{self.append}({value})")
        else:
            w.line(f"{self.append}({value})")

    def records(self, nullable: bool, expression: str) -> None:
        w = self.writer
        value = self.local("v", expression)
        measure = f"(len({value}) if isinstance({value}, buffers) else {value}.length)"
        length = self.length("i", value, nullable, measure)
        with w.block(f"if {length} > {int(self.flexible)}:"):
            w.line("chunks.append(join(parts))")
            w.line("parts.clear()")
            w.line(f"chunks.append({value})")

    def nested(self, layout: StructLayout, nullable: bool, expression: str) -> None:
        w = self.writer
        value = self.local("m", expression)
        if not nullable:
            self.struct(layout, value)
            return
        self.flush()
        with w.block(f"if {value} is None:"):
            w.line(f"{self.append}(null_marker)")
        with w.block("else:"):
            self.pending.append(("b", "1"))
            self.struct(layout, value)
            self.flush()

    def array(self, element: WireType, nullable: bool, expression: str) -> None:
        w = self.writer
        values = self.local("v", expression)
        self.length("i", values, nullable, f"len({values})")
        if isinstance(element, Wire) and element.struct_format and element.name != "uuid":
            with w.block(f"if {values}:"):
                w.line(f"{self.append}(pack(f'>{{len({values})}}{element.struct_format}', *{values}))")
            return
        item = w.fresh("m")
        with w.block(f"for {item} in {values}{' or ()' if nullable else ''}:"):
            self.value(element, False, item)
            self.flush()
