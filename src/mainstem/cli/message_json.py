"""A message as one JSON object per line: `consume --format json` prints it, `produce --format json` reads it.

Bytes that are not UTF-8 travel as base64 under `key_base64` and `value_base64`, so that a topic can be piped
into another without loss.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, NamedTuple

from mainstem.cli.errors import CommandError

Headers = list[tuple[str, str | bytes | None]]


class OutgoingMessage(NamedTuple):
    """One message to send. None stands for null; a partition of -1 and a timestamp of 0 mean `not given`."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = []  # noqa: RUF012 - a tuple's default, never changed
    partition: int = -1
    timestamp_ms: int = 0


def encode(fields: dict[str, Any], key: bytes | None, value: bytes | None, headers: Headers) -> str:
    """One line of JSON: `fields` first, then key, value and headers."""
    return json.dumps(fields | fields_of(key, value, headers), ensure_ascii=False)


def fields_of(key: bytes | None, value: bytes | None, headers: Headers) -> dict[str, Any]:
    """Key, value and headers as JSON knows them: text where it is UTF-8, base64 otherwise."""
    entry = _put(_put({}, "key", key), "value", value)
    if headers:
        entry["headers"] = [_put({"name": name}, "value", content) for name, content in headers]
    return entry


def decode(line: bytes, line_number: int) -> OutgoingMessage:
    """The message that a line of JSON describes; raises CommandError that names the line."""
    try:
        entry = json.loads(line)
        if not isinstance(entry, dict):
            raise ValueError("not an object")
        headers: Headers = [
            (str(header["name"]), _take(header, "value")) for header in entry.get("headers", [])
        ]
        return OutgoingMessage(
            _take(entry, "value"),
            _take(entry, "key"),
            headers,
            int(entry.get("partition", -1)),
            int(entry.get("timestamp", 0)),
        )
    except (ValueError, TypeError, KeyError, AttributeError, binascii.Error) as error:
        raise CommandError(
            f"line {line_number} is not a message in JSON ({error})",
            'write one object per line, for example {"key": "k", "value": "v"}',
        ) from None


def _put(entry: dict[str, Any], name: str, content: str | bytes | None) -> dict[str, Any]:
    try:
        entry[name] = content.decode() if isinstance(content, bytes) else content
    except UnicodeDecodeError:
        assert isinstance(content, bytes)
        entry[f"{name}_base64"] = base64.b64encode(content).decode()
    return entry


def _take(entry: dict[str, Any], name: str) -> bytes | None:
    if f"{name}_base64" in entry:
        return base64.b64decode(entry[f"{name}_base64"], validate=True)
    content = entry.get(name)
    if content is None:
        return None
    return content.encode() if isinstance(content, str) else json.dumps(content, ensure_ascii=False).encode()
