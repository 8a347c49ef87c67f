"""Request and response headers.

A request header is v1 (correlation id, client id) or, for flexible versions, v2 (tagged fields behind them;
the client id keeps the old string form). A response header is v0 or, for flexible versions, v1, except that
ApiVersions always answers with v0: its client cannot know yet what the broker understands. A header must be
readable even when the API or version is unknown, so that the broker can answer with an error.
"""

import struct

from msgspec import Struct

from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.primitives import Buffer, skip_tags
from mainstem.protocol.registry import API_KEYS

API_VERSIONS_KEY = 18

_FIXED_PART = struct.Struct(">hhi")
_FIXED_PART_AND_LENGTH = struct.Struct(">hhih")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_NO_TAGS = b"\x00"


class RequestHeader(Struct, frozen=True, gc=False):
    """What every request begins with; the client's tagged fields are skipped."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def is_flexible(api_key: int, version: int) -> bool:
    """Whether this version of a known API has compact types and tagged fields."""
    info = API_KEYS.get(api_key)
    return info is not None and version >= info.flexible_from


def decode_request_header(buf: Buffer, pos: int, end: int) -> tuple[RequestHeader, int]:
    """Read the header at `pos`; returns it and where the body starts.

    With an API or a version that is not in the registry the rest of the frame has no known form: the
    client id is then a best guess (None when it cannot be read), and the body is said to start at `end`.
    """
    if end - pos < _FIXED_PART.size:
        raise ProtocolError(f"a request header has at least {_FIXED_PART.size} bytes, there are {end - pos}")
    api_key, version, correlation_id = _FIXED_PART.unpack_from(buf, pos)
    pos += _FIXED_PART.size
    info = API_KEYS.get(api_key)
    if info is None or not 0 <= version <= info.max_version:
        return RequestHeader(api_key, version, correlation_id, _guess_client_id(buf, pos, end)), end
    client_id, pos = _read_client_id(buf, pos, end)
    if version >= info.flexible_from:
        if pos >= end:
            raise ProtocolError("the request header ends before its tagged fields")
        tag_count = buf[pos]
        pos += 1
        if tag_count:
            pos = skip_tags(tag_count, buf, pos, end)
    return RequestHeader(api_key, version, correlation_id, client_id), pos


def encode_request_header(api_key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The client's side of `decode_request_header`."""
    tags = _NO_TAGS if is_flexible(api_key, version) else b""
    if client_id is None:
        return _FIXED_PART_AND_LENGTH.pack(api_key, version, correlation_id, -1) + tags
    text = client_id.encode()
    return _FIXED_PART_AND_LENGTH.pack(api_key, version, correlation_id, len(text)) + text + tags


def encode_response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    header = _INT32.pack(correlation_id)
    return header + _NO_TAGS if _response_has_tags(api_key, version) else header


def decode_response_header(api_key: int, version: int, buf: Buffer, pos: int, end: int) -> tuple[int, int]:
    """The client's side of `encode_response_header`: the correlation id and where the body starts."""
    with_tags = _response_has_tags(api_key, version)
    if end - pos < _INT32.size + with_tags:
        raise ProtocolError(f"the response header is cut off after {end - pos} bytes")
    (correlation_id,) = _INT32.unpack_from(buf, pos)
    pos += _INT32.size
    if with_tags:
        pos = skip_tags(buf[pos], buf, pos + 1, end)
    return correlation_id, pos


def _response_has_tags(api_key: int, version: int) -> bool:
    return api_key != API_VERSIONS_KEY and is_flexible(api_key, version)


def _read_client_id(buf: Buffer, pos: int, end: int) -> tuple[str | None, int]:
    if end - pos < _INT16.size:
        raise ProtocolError("the request header ends before its client id")
    (length,) = _INT16.unpack_from(buf, pos)
    pos += _INT16.size
    if length == -1:
        return None, pos
    stop = pos + length
    if length < 0 or stop > end:
        raise ProtocolError(f"the client id claims {length} bytes, {end - pos} are left")
    try:
        return str(buf[pos:stop], "utf-8"), stop
    except UnicodeDecodeError as exc:
        raise ProtocolError("the client id is not UTF-8") from exc


def _guess_client_id(buf: Buffer, pos: int, end: int) -> str | None:
    try:
        return _read_client_id(buf, pos, end)[0]
    except ProtocolError:
        return None
