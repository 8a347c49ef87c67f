"""How `mainstem consume` prints a message: as text, as JSON, or as its bare bytes.

A formatter is chosen once and then called per message; it must not look at options again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from mainstem.cli.errors import CommandError
from mainstem.cli.output import message_json
from mainstem.cli.output.message_json import Headers
from mainstem.cli.typed.times import iso_time

Formatter = Callable[[Message], bytes]


def formatter(name: str, show: str) -> Formatter:
    """The function that turns a message into what is printed for it."""
    fields = [field.strip() for field in show.split(",") if field.strip()]
    for field in fields:
        if field not in _FIELDS:
            raise CommandError(f"--show knows no field {field!r}", f"use some of {','.join(_FIELDS)}", 2)
    if fields and name != "text":
        raise CommandError(
            "--show is for the text format", "leave it out: json holds every field already", exit_code=2
        )
    if name == "json":
        return _json
    if name == "raw":
        return lambda message: message.value() or b""
    if not fields:
        return lambda message: (message.value() or b"") + b"\n"
    columns = [_FIELDS[field] for field in fields]
    return lambda message: (
        b"\t".join([*(column(message) for column in columns), message.value() or b""]) + b"\n"
    )


def _headers(message: Message) -> Headers:
    headers: Any = message.headers() or []
    return list(headers)


def _timestamp_ms(message: Message) -> int | None:
    kind, timestamp = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp


def _json(message: Message) -> bytes:
    fields = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": _timestamp_ms(message),
    }
    return message_json.encode(fields, message.key(), message.value(), _headers(message)).encode() + b"\n"


def _time_text(message: Message) -> bytes:
    timestamp = _timestamp_ms(message)
    return b"-" if timestamp is None else iso_time(timestamp).encode()


def _headers_text(message: Message) -> bytes:
    return b",".join(name.encode() + b"=" + _bytes(value) for name, value in _headers(message))


def _bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""


_FIELDS: dict[str, Formatter] = {
    "partition": lambda message: str(message.partition()).encode(),
    "offset": lambda message: str(message.offset()).encode(),
    "timestamp": _time_text,
    "key": lambda message: message.key() or b"",
    "headers": _headers_text,
}
