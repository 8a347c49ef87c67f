"""A message as one JSON object per line: `consume --format json` prints it, `produce --format json` reads it.

Bytes that are not UTF-8 travel as base64 under `key_base64` and `value_base64`, so that a topic can be piped
into another without loss.
"""

from __future__ import annotations

import base64
import json
from typing import Any, NamedTuple

from mainstem.cli.errors import CommandError
from mainstem.cli.typed.numbers import INT64_MAX
from mainstem.nearest import did_you_mean

# Where a message was when it was printed does not say where it goes now.
_PLACE = frozenset({"topic", "partition", "offset"})
_CONTENT = frozenset({"key", "key_base64", "value", "value_base64"})
_FIELDS = _PLACE | _CONTENT | {"timestamp", "headers"}
_HEADER_FIELDS = frozenset({"name", "value", "value_base64"})
_EXAMPLE = 'write one object per line, for example {"key": "k", "value": "v"}; a null value is a tombstone'
_HEADERS_EXAMPLE = 'write "headers": [{"name": "source", "value": "web"}]'

ANY_PARTITION = -1

Headers = list[tuple[str, str | bytes | None]]


class OutgoingMessage(NamedTuple):
    """One message to send. None stands for null; a timestamp of 0 means `not given`."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = []  # noqa: RUF012 - a tuple's default, never changed
    partition: int = ANY_PARTITION
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
    hint = _EXAMPLE
    try:
        entry = _known(json.loads(line), _FIELDS)
        value, key, timestamp_ms = _needed(entry), _take(entry, "key"), _timestamp_ms(entry)
        hint = _HEADERS_EXAMPLE
        return OutgoingMessage(value, key, _headers(entry), timestamp_ms=timestamp_ms)
    except RecursionError:
        raise CommandError(f"line {line_number} is not a message in JSON: it is nested too deeply") from None
    except ValueError as error:
        raise CommandError(f"line {line_number} is not a message in JSON: {error}", hint) from None


def _known(entry: Any, names: frozenset[str]) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ValueError("it is not an object")
    for name in entry:
        if name not in names:
            raise ValueError(f"there is no field {name!r}{did_you_mean(name, names)}")
    return entry


def _headers(entry: dict[str, Any]) -> Headers:
    headers = entry.get("headers", [])
    if not isinstance(headers, list):
        raise ValueError("headers is not a list")
    found: Headers = []
    for header in headers:
        name = _known(header, _HEADER_FIELDS).get("name")
        if not isinstance(name, str):
            raise ValueError("a header has no name")
        found.append((name, _needed(header)))
    return found


def _timestamp_ms(entry: dict[str, Any]) -> int:
    timestamp_ms = entry.get("timestamp")
    if timestamp_ms is None:
        return 0
    if type(timestamp_ms) is not int or not 0 <= timestamp_ms <= INT64_MAX:
        raise ValueError(f"timestamp is not a number of milliseconds from 0 to {INT64_MAX}")
    return timestamp_ms


def _put(entry: dict[str, Any], name: str, content: str | bytes | None) -> dict[str, Any]:
    try:
        entry[name] = content.decode() if isinstance(content, bytes) else content
    except UnicodeDecodeError:
        assert isinstance(content, bytes)
        entry[f"{name}_base64"] = base64.b64encode(content).decode()
    return entry


def _needed(entry: dict[str, Any]) -> bytes | None:
    if "value" not in entry and "value_base64" not in entry:
        raise ValueError("value is missing")
    return _take(entry, "value")


def _take(entry: dict[str, Any], name: str) -> bytes | None:
    content, encoded = entry.get(name), entry.get(f"{name}_base64")
    if encoded is not None:
        if content is not None:
            raise ValueError(f"{name} and {name}_base64 exclude each other")
        try:
            return base64.b64decode(encoded, validate=True)
        except (ValueError, TypeError):
            raise ValueError(f"{name}_base64 is not base64") from None
    if content is None:
        return None
    return content.encode() if isinstance(content, str) else json.dumps(content, ensure_ascii=False).encode()
