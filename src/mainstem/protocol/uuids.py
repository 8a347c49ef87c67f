"""Kafka's topic and directory ids: sixteen raw bytes in memory, url-safe base64 without padding as text."""

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode

from mainstem.protocol.errors import ProtocolError

UUID_SIZE = 16
ZERO_UUID = bytes(UUID_SIZE)
ONE_UUID = bytes(15) + b"\x01"
_RESERVED_PREFIX = bytes(15)
_RESERVED_LAST_BYTE_MAX = 99
_TEXT_LENGTH_MAX = 24


def random_uuid() -> bytes:
    """A fresh version-4 id, never one that Kafka reserves, and never one whose text looks like an option."""
    while True:
        raw = bytearray(os.urandom(UUID_SIZE))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        candidate = bytes(raw)
        # A leading dash would be taken for a flag on a command line.
        if not is_reserved(candidate) and not uuid_to_text(candidate).startswith("-"):
            return candidate


def is_reserved(uuid: bytes) -> bool:
    """Kafka keeps the first hundred ids for its own meanings (none, metadata topic, lost directory, ...)."""
    return uuid[:15] == _RESERVED_PREFIX and uuid[15] <= _RESERVED_LAST_BYTE_MAX


def uuid_to_text(uuid: bytes) -> str:
    return urlsafe_b64encode(uuid).rstrip(b"=").decode()


def uuid_from_text(text: str) -> bytes:
    """The reverse of `uuid_to_text`; raises `ProtocolError` where Kafka would not take the text for an id."""
    if len(text) > _TEXT_LENGTH_MAX:
        raise ProtocolError(f"an id has at most {_TEXT_LENGTH_MAX} characters, this text has {len(text)}")
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError as exc:
        raise ProtocolError(f"{text!r} is not url-safe base64") from exc
    if len(raw) != UUID_SIZE:
        raise ProtocolError(f"{text!r} decodes to {len(raw)} bytes, an id has {UUID_SIZE}")
    return raw
