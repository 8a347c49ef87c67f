"""A blocking socket with a deadline for whole frames rather than for single reads.

It knows lengths and bytes, nothing of what they mean.
"""

from __future__ import annotations

import math
import socket
import struct
import time
from collections.abc import Sequence

from mainstem.protocol.errors import ProtocolError
from mainstem.protocol.primitives import Buffer

_LENGTH = struct.Struct(">i")
_ANSWER_BYTES_MIN = 4
# A read may wait a little longer than what is left for its frame.
_TIMEOUT_KEPT = 0.95
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


class FrameSocket:
    """Sends and receives frames. Raises `OSError` (`TimeoutError` among them) and `ProtocolError`."""

    def __init__(self, sock: socket.socket, frame_bytes_max: int) -> None:
        self._socket = sock
        self._frame_bytes_max = frame_bytes_max
        self._length = memoryview(bytearray(4))

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def send(self, chunks: Sequence[Buffer], timeout_s: float) -> None:
        """Send one frame of chunks."""
        size = sum(map(len, chunks))
        self._socket.settimeout(timeout_s)
        self._socket.sendall(b"".join((_LENGTH.pack(size), *chunks)))

    def receive(self, buffer: ReceiveBuffer, timeout_s: float) -> memoryview:
        """The next frame, in the memory of `buffer`."""
        deadline = time.monotonic() + timeout_s
        self._fill(self._length, deadline)
        (size,) = _LENGTH.unpack(self._length)
        if not _ANSWER_BYTES_MIN <= size <= self._frame_bytes_max:
            raise ProtocolError(_bad_length(bytes(self._length), size, self._frame_bytes_max))
        frame = buffer.room(size)
        self._fill(frame, deadline)
        return frame

    def _fill(self, view: memoryview, deadline: float) -> None:
        sock, position, size = self._socket, 0, len(view)
        timeout_s = math.inf
        while position < size:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("timed out")
            if left_s < timeout_s * _TIMEOUT_KEPT:
                # Not for every piece of a large frame: each time is a call of the kernel.
                timeout_s = left_s
                sock.settimeout(timeout_s)
            received = sock.recv_into(view[position:])
            if not received:
                raise ProtocolError("the broker closed the connection")
            position += received


def _bad_length(prefix: bytes, size: int, limit: int) -> str:
    if prefix[0] in _TLS_RECORD_TYPES and prefix[1] == 3:
        return "it speaks TLS: set security.protocol to SSL or SASL_SSL"
    if size > limit:
        return f"that is no answer of a Kafka broker: it claims {size} bytes, at most {limit} are taken"
    return "that is no answer of a Kafka broker"
