"""Reads what `mainstem produce` sends: lines of text, lines of JSON, or all of the input as one message.

It only turns bytes into messages; sending and counting belong to produce.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from mainstem.cli.errors import CommandError
from mainstem.cli.output import message_json
from mainstem.cli.output.message_json import Headers, OutgoingMessage


class InputRules(NamedTuple):
    """How text becomes a message: see the options of `mainstem produce`."""

    format: str
    key: bytes | None
    key_separator: bytes | None
    null_marker: bytes | None
    headers: Headers
    partition: int


def read_messages(source: BinaryIO, rules: InputRules) -> Iterator[OutgoingMessage]:
    """The messages of the input, one by one, as they arrive; none where the input is empty."""
    if rules.format == "raw":
        if content := source.read():
            yield OutgoingMessage(content, rules.key, rules.headers, rules.partition)
    elif rules.format == "json":
        for number, line in enumerate(source, 1):
            if line.strip():
                yield _with_defaults(message_json.decode(line, number), rules)
    else:
        for number, line in enumerate(source, 1):
            yield _text_message(line.removesuffix(b"\n").removesuffix(b"\r"), number, rules)


def _with_defaults(message: OutgoingMessage, rules: InputRules) -> OutgoingMessage:
    return message._replace(
        key=message.key if message.key is not None else rules.key,
        headers=[*message.headers, *rules.headers],
        partition=rules.partition,
    )


def _text_message(line: bytes, number: int, rules: InputRules) -> OutgoingMessage:
    key = rules.key
    if rules.key_separator is not None:
        head, separator, rest = line.partition(rules.key_separator)
        if not separator:
            shown = rules.key_separator.decode(errors="replace")
            raise CommandError(
                f"line {number} holds no key: {shown!r} is not in it",
                "leave --key-separator out to send lines without keys",
            )
        key, line = _or_null(head, rules), rest
    return OutgoingMessage(_or_null(line, rules), key, rules.headers, rules.partition)


def _or_null(content: bytes, rules: InputRules) -> bytes | None:
    return None if rules.null_marker is not None and content == rules.null_marker else content
