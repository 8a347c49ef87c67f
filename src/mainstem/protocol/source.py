"""The notebook that both generators write in: lines with indentation, fresh names, names bound for the code.

It knows nothing of wire formats; `decoder_source` and `encoder_source` do.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_INDENT = "    "


class SourceWriter:
    """Collects the source of one compiled function and the objects that its names refer to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {}
        self._depth = 0
        self._fresh = 0
        self._bound: dict[Any, str] = {}

    def line(self, text: str) -> None:
        self.lines.append(_INDENT * self._depth + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """A compound statement; whatever is written inside is one level deeper."""
        self.line(opening)
        self._depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self._depth -= 1

    def fresh(self, stem: str) -> str:
        """A name that nothing else in this source has."""
        self._fresh += 1
        return f"{stem}{self._fresh}"

    def bind(self, stem: str, value: Any) -> str:
        """A global name for an object that the generated code needs."""
        key = (stem, id(value))
        if key not in self._bound:
            self._bound[key] = name = self.fresh(stem)
            self.namespace[name] = value
        return self._bound[key]

    def bind_struct(self, method: str, struct_format: str) -> tuple[str, int]:
        """A bound method of a big-endian `struct.Struct`, and that struct's size."""
        key = (method, struct_format)
        compiled = struct.Struct(">" + struct_format)
        if key not in self._bound:
            self._bound[key] = name = self.fresh(method + "_")
            self.namespace[name] = getattr(compiled, method)
        return self._bound[key], compiled.size

    def compile(self, title: str, function: str) -> Any:
        """Run the source and hand out one of the functions that it defines."""
        code = compile("\n".join(self.lines), f"<{title}>", "exec")
        exec(code, self.namespace)
        return self.namespace[function]


def literal(writer: SourceWriter, value: Any) -> str:
    """An expression for a field's default; lists and other factories give a new object each time."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    factory = value.factory
    return "[]" if factory is list else f"{writer.bind('new_', factory)}()"
