"""Small readers of what people type: `name=value` pairs and separators with escapes."""

from __future__ import annotations

from collections.abc import Iterable

from mainstem.cli.errors import CommandError

_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\0": "\0", "\\\\": "\\"}


def parse_pairs(items: Iterable[str], option: str) -> list[tuple[str, str]]:
    """`name=value` items in their order; the value may be empty and may hold further equals signs."""
    pairs: list[tuple[str, str]] = []
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise CommandError(
                f"{option} {item!r} is not NAME=VALUE",
                f"write it with an equals sign: {option} NAME=VALUE",
                2,
            )
        pairs.append((name.strip(), value))
    return pairs


def unescape(text: str) -> str:
    r"""A separator as typed: `\t`, `\n` and `\0` stand for characters that are hard to type."""
    for written, meant in _ESCAPES.items():
        text = text.replace(written, meant)
    return text
