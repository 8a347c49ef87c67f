"""Generates the source of a decoder for one message, version and layout.

The generated function is one straight run of code: nested structs are written inline, neighbouring
fixed-size fields, length prefixes and tag counts are read by one `unpack_from`. Safety rests on two rules
that every emitter here must keep. First, a length or count is compared with what is left before `end` prior
to any slice, loop or allocation. Second, a fixed-size read may run past `end` (into bytes of the same
buffer, or into a `struct.error`), because the last statement refuses any message whose position ended up
behind `end`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import error as struct_error
from struct import unpack_from
from typing import Any

from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.layout import Array, Field, Nested, StructLayout, WireType, minimal_size
from mainstem.protocol.primitives import Buffer, continue_uvarint, next_tag, skip_tags
from mainstem.protocol.schema import ApiMessage, Wire
from mainstem.protocol.source import SourceWriter, literal

# What a request may hold in all its arrays together. An object takes some hundred times the two bytes that a
# hostile client needs for it, so that the size of the frame alone bounds neither memory nor time.
REQUEST_ELEMENTS_MAX = 100_000

# Kafka refuses longer ones in flexible versions too, where the length has room for more.
STRING_BYTES_MAX = 32767

Decoder = Callable[[Buffer, int, int], tuple[Any, int]]


def compile_decoder(layout: StructLayout, version: int) -> Decoder:
    title = f"{layout.cls.__name__} v{version}"
    schema = getattr(layout.cls, "SCHEMA", None)
    bounded = isinstance(schema, ApiMessage) and schema.kind == "request"
    generator = _DecoderGenerator(layout.flexible, title, bounded)
    generator.message(layout)
    decoder: Decoder = generator.writer.compile(f"decoder of {title}", "decode")
    return decoder


def bad_length(what: str, length: int, left: int) -> ProtocolError:
    return ProtocolError(f"{what} claims length {length}, {left} bytes are left")


def too_long(what: str, length: int) -> ProtocolError:
    return ProtocolError(f"{what} claims {length} bytes, a string has {STRING_BYTES_MAX} at most")


def too_many(what: str) -> ProtocolError:
    return ProtocolError(f"{what} brings the request above {REQUEST_ELEMENTS_MAX} array elements")


_RUNTIME = {
    "ProtocolError": ProtocolError,
    "bad_length": bad_length,
    "continue_uvarint": continue_uvarint,
    "next_tag": next_tag,
    "skip_tags": skip_tags,
    "struct_error": struct_error,
    "too_long": too_long,
    "too_many": too_many,
    "unpack_from": unpack_from,
}


class _DecoderGenerator:
    def __init__(self, flexible: bool, title: str, bounded: bool) -> None:
        self.writer = SourceWriter()
        self.writer.namespace.update(_RUNTIME)
        self.flexible = flexible
        self.title = title
        self.bounded = bounded
        self.pending: list[tuple[str, str]] = []
        self.tagged_values: list[tuple[str, str, Field]] = []

    def message(self, layout: StructLayout) -> None:
        w = self.writer
        with w.block("def decode(buf, pos, end):"):
            with w.block("try:"):
                self.room()
                if _holds_records(layout):
                    w.line("view = buf if type(buf) is memoryview else memoryview(buf)")
                value = self.struct(layout)
                self.flush()
                with w.block("if pos > end:"):
                    w.line(f"raise ProtocolError('{self.title} is {{}} bytes short'.format(pos - end))")
                w.line(f"return {value}, pos")
            with w.block("except (struct_error, IndexError, UnicodeDecodeError) as exc:"):
                w.line(f"raise ProtocolError('{self.title} cannot be read: {{}}'.format(exc)) from exc")
        # A tagged value is rare, so it costs a call instead of room in the hot function. The list grows while
        # it is walked when a tagged struct holds tagged fields itself.
        for function, where, field in self.tagged_values:
            self.tagged_value(function, where, field)

    def tagged_value(self, function: str, where: str, field: Field) -> None:
        w = self.writer
        with w.block(f"def {function}(buf, pos, end):"):
            self.room()
            value = self.value(field.type, field.nullable, where)
            self.flush()
            with w.block("if pos != end:"):
                w.line(f"raise ProtocolError('tagged field {where} has a wrong size')")
            w.line(f"return {value}")

    def room(self) -> None:
        if self.bounded:
            self.writer.line(f"room = {REQUEST_ELEMENTS_MAX}")

    def flush(self) -> None:
        """Read the fixed-size values that have been asked for since the last flush, in one go."""
        if not self.pending:
            return
        w = self.writer
        if [form for form, _ in self.pending] == ["B"]:
            w.line(f"{self.pending[0][1]} = buf[pos]")
            w.line("pos += 1")
        else:
            unpack, size = w.bind_struct("unpack_from", "".join(form for form, _ in self.pending))
            w.line(f"{', '.join(name for _, name in self.pending)}, = {unpack}(buf, pos)")
            w.line(f"pos += {size}")
        self.pending.clear()

    def struct(self, layout: StructLayout) -> str:
        """Emit the reads of a struct; returns the expression that builds it (valid after a flush)."""
        values: dict[str, str] = {}
        for field in layout.plain_fields:
            where = f"{layout.cls.__name__}.{field.name}"
            values[field.name] = self.value(field.type, field.nullable, where)
        if self.flexible:
            self.tags(layout, values)
        arguments = [values.get(f.name) or literal(self.writer, f.default) for f in layout.fields]
        return f"{self.writer.bind(layout.cls.__name__ + '_', layout.cls)}({', '.join(arguments)})"

    def tags(self, layout: StructLayout, values: dict[str, str]) -> None:
        w = self.writer
        count = self.fixed("B", "tags")
        self.flush()
        known = layout.tagged_fields
        for field in known:
            values[field.name] = w.fresh("v")
            w.line(f"{values[field.name]} = {literal(w, field.default)}")
        with w.block(f"if {count}:"):
            if not known:
                w.line(f"pos = skip_tags({count}, buf, pos, end)")
                return
            with w.block(f"if {count} > 127:"):
                w.line(f"{count}, pos = continue_uvarint({count}, buf, pos, end)")
            with w.block(f"for _ in range({count}):"):
                w.line("tag, pos, stop = next_tag(buf, pos, end)")
                for field in known:
                    function = w.fresh("tagged_value_")
                    self.tagged_values.append((function, f"{layout.cls.__name__}.{field.name}", field))
                    with w.block(f"if tag == {field.tag}:"):
                        w.line(f"{values[field.name]} = {function}(buf, pos, stop)")
                w.line("pos = stop")

    def value(self, wire_type: WireType, nullable: bool, where: str) -> str:
        """Emit the read of one value; returns the expression for it (valid after a flush)."""
        match wire_type:
            case Array(element):
                return self.array(element, nullable, where)
            case Nested(layout) if nullable:
                return self.nullable_struct(layout)
            case Nested(layout):
                return self.struct(layout)
            case Wire(struct_format=struct_format) if struct_format:
                return self.fixed(struct_format, "v")
            case Wire(name="string"):
                return self.bytes_like("h", "str(buf[pos:stop], 'utf-8')", nullable, where, STRING_BYTES_MAX)
            case Wire(name="bytes"):
                return self.bytes_like("i", "bytes(buf[pos:stop])", nullable, where)
            case Wire(name="records"):
                return self.bytes_like("i", "view[pos:stop]", nullable, where)
        raise TypeError(f"{where}: no decoder for {wire_type!r}")

    def fixed(self, struct_format: str, stem: str) -> str:
        name = self.writer.fresh(stem)
        self.pending.append((struct_format, name))
        return name

    def length(self, struct_format: str, where: str = "", limit: int = 0) -> str:
        """Emit the read of a length prefix; null is -1 afterwards, in flexible versions too."""
        w = self.writer
        name = self.fixed("B" if self.flexible else struct_format, "n")
        self.flush()
        if self.flexible:
            with w.block(f"if {name} > 127:"):
                w.line(f"{name}, pos = continue_uvarint({name}, buf, pos, end)")
                if limit:
                    with w.block(f"if {name} > {limit + 1}:"):
                        w.line(f"raise too_long('{where}', {name} - 1)")
            w.line(f"{name} -= 1")
        return name

    def bytes_like(
        self, struct_format: str, expression: str, nullable: bool, where: str, limit: int = 0
    ) -> str:
        w = self.writer
        length = self.length(struct_format, where, limit)
        value = w.fresh("v")
        with self.unless_null(value, length, nullable):
            w.line(f"stop = pos + {length}")
            with w.block(f"if {length} < 0 or stop > end:"):
                w.line(f"raise bad_length('{where}', {length}, end - pos)")
            w.line(f"{value} = {expression}")
            w.line("pos = stop")
        return value

    @contextmanager
    def unless_null(self, value: str, length: str, nullable: bool) -> Iterator[None]:
        """What reads a value with a length in front, where that does not say null."""
        w = self.writer
        if not nullable:
            yield
            return
        with w.block(f"if {length} == -1:"):
            w.line(f"{value} = None")
        with w.block("else:"):
            yield

    def nullable_struct(self, layout: StructLayout) -> str:
        w = self.writer
        marker = self.fixed("b", "marker")
        self.flush()
        value = w.fresh("v")
        with w.block(f"if {marker} == -1:"):
            w.line(f"{value} = None")
        with w.block(f"elif {marker} == 1:"):
            built = self.struct(layout)
            self.flush()
            w.line(f"{value} = {built}")
        with w.block("else:"):
            w.line(f"raise ProtocolError('{layout.cls.__name__} has null marker {{}}'.format({marker}))")
        return value

    def array(self, element: WireType, nullable: bool, where: str) -> str:
        count = self.length("i")
        values = self.writer.fresh("v")
        with self.unless_null(values, count, nullable):
            self._elements(values, count, element, where)
        return values

    def _elements(self, values: str, count: str, element: WireType, where: str) -> None:
        w = self.writer
        size = max(1, minimal_size(element, self.flexible))
        with w.block(f"if {count} < 0 or {count} * {size} > end - pos:"):
            w.line(f"raise bad_length('{where}', {count}, end - pos)")
        if self.bounded:
            w.line(f"room -= {count}")
            with w.block("if room < 0:"):
                w.line(f"raise too_many('{where}')")
        if isinstance(element, Wire) and element.struct_format and element.name != "uuid":
            template = f"f'>{{{count}}}{element.struct_format}'"
            w.line(f"{values} = list(unpack_from({template}, buf, pos)) if {count} else []")
            w.line(f"pos += {count} * {element.size}")
            return
        w.line(f"{values} = []")
        with w.block(f"for _ in range({count}):"):
            item = self.value(element, False, where)
            self.flush()
            w.line(f"{values}.append({item})")


def _holds_records(layout: StructLayout) -> bool:
    return any(_is_records(field.type) for field in layout.plain_fields)


def _is_records(wire_type: WireType) -> bool:
    match wire_type:
        case Wire(name=name):
            return name == "records"
        case Array(element):
            return _is_records(element)
        case Nested(layout):
            return _holds_records(layout)
