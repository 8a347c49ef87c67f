"""Frames out of a stream of bytes: a length of four bytes, then as many bytes.

No I/O: a reader says where the next bytes are to be put, and is told how many came. It never asks for bytes
behind the frame that it is in, so that those of the next one stay with the system until somebody wants them.
A length is checked before any memory is taken for it.
"""

from __future__ import annotations

import struct

from mainstem.protocol.errors import ProtocolError

_LENGTH = struct.Struct(">i")
_FRAME_BYTES_MIN = 4  # a correlation id
# The first bytes of a TLS alert or handshake record, read as a length.
_TLS_RECORD_TYPES = (0x15, 0x16)


class ReceiveBuffer:
    """One large buffer that is used again for every answer.

    It grows by being replaced: whoever still looks at the former memory keeps it, unharmed.
    """

    def __init__(self, size: int = 0) -> None:
        self._view = memoryview(bytearray(size))

    def room(self, size: int) -> memoryview:
        if len(self._view) < size:
            # A little more than asked for: answers of nearly one size must not replace it each time.
            self._view = memoryview(bytearray(size + size // 8))
        return self._view[:size]


class FrameReader:
    """Puts frames together, each in `buffer` or, without one, in memory of its own."""

    def __init__(self, frame_bytes_max: int) -> None:
        self.buffer: ReceiveBuffer | None = None
        self._frame_bytes_max = frame_bytes_max
        self._length = memoryview(bytearray(_LENGTH.size))
        self._frame: memoryview | None = None
        self._room = self._length

    def room(self) -> memoryview:
        """Where the next bytes belong; never empty."""
        return self._room

    def received(self, count: int) -> memoryview | None:
        """So many bytes were put there: the frame that they complete, if they do. `ProtocolError` when this
        can be no frame.
        """
        self._room = self._room[count:]
        if self._room:
            return None
        frame = self._frame
        if frame is None:
            self._frame = self._room = self._begin()
        else:
            self._frame, self._room = None, self._length
        return frame

    def _begin(self) -> memoryview:
        (size,) = _LENGTH.unpack(self._length)
        if not _FRAME_BYTES_MIN <= size <= self._frame_bytes_max:
            raise ProtocolError(_bad_length(bytes(self._length), size, self._frame_bytes_max))
        return memoryview(bytearray(size)) if self.buffer is None else self.buffer.room(size)


def framed(payload_chunks: list[bytes | bytearray | memoryview]) -> bytes:
    """The chunks as one frame."""
    return b"".join((_LENGTH.pack(sum(map(len, payload_chunks))), *payload_chunks))


def _bad_length(prefix: bytes, size: int, limit: int) -> str:
    if prefix[0] in _TLS_RECORD_TYPES and prefix[1] == 3:
        return "it speaks TLS: set security.protocol to SSL or SASL_SSL"
    if prefix == b"HTTP":
        return "that is no Kafka broker: it speaks HTTP"
    if size > limit:
        return f"that is no answer of a Kafka broker: it claims {size} bytes, at most {limit} are taken"
    return "that is no answer of a Kafka broker"
