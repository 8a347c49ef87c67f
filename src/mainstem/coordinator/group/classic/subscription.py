"""The topics in a consumer's protocol metadata, which the coordinator otherwise passes on unread."""

from struct import Struct
from typing import Final

from mainstem.protocol.errors import ProtocolError

PROTOCOL_TYPE: Final = "consumer"

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")


def subscribed_topics(metadata: bytes) -> list[str]:
    """Topics and user data stand first in every version, so no version has to be known. ProtocolError when it
    is no subscription.
    """
    try:
        return _read(metadata)
    except (ValueError, IndexError) as error:
        raise ProtocolError(f"not a consumer's subscription: {error}") from None


def _read(data: bytes) -> list[str]:
    if _int(_INT16, data, 0) < 0:
        raise ValueError("its version is negative")
    count = _int(_INT32, data, 2)
    if count < 0:
        raise ValueError("it has no list of topics")
    topics: list[str] = []
    position = 6
    for _ in range(count):
        size = _int(_INT16, data, position)
        if size < 0:
            raise ValueError("a topic has no name")
        position += 2
        topics.append(_bytes(data, position, size).decode())
        position += size
    _bytes(data, position + 4, max(0, _int(_INT32, data, position)))
    return topics


def _int(kind: Struct, data: bytes, position: int) -> int:
    value: int = kind.unpack(_bytes(data, position, kind.size))[0]
    return value


def _bytes(data: bytes, position: int, size: int) -> bytes:
    part = data[position : position + size]
    if len(part) != size:
        raise ValueError("it ends too early")
    return part
