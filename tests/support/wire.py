"""A client of bare frames: it sends exactly the request a test builds, also one that no client would send."""

import socket
import struct
from collections import deque
from types import TracebackType
from typing import Any, Self

from mainstem.protocol import codec, registry
from mainstem.protocol.headers import decode_response_header, encode_request_header
from mainstem.wire.frames import framed
from tests.support.target import Target

_TIMEOUT_SECONDS = 30


class ConnectionClosedError(Exception):
    """The broker closed the connection."""


class WireClient:
    """One connection. Requests may be pipelined: `send` several, then `receive` as many."""

    def __init__(self, target: Target) -> None:
        self._socket = socket.create_connection(target.address, timeout=_TIMEOUT_SECONDS)
        self._correlation_id = 0
        self._expected: deque[tuple[int, int, int]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def call(self, request: Any, version: int | None = None) -> Any:
        """Send a request, by default in its newest version, and return its response."""
        self.send(request, version)
        return self.receive()

    def send(self, request: Any, version: int | None = None, *, expect_response: bool = True) -> None:
        key = request.SCHEMA.api_key
        if version is None:
            version = registry.API_KEYS[key].max_version
        self.send_body(key, version, codec.encode(request, version), expect_response=expect_response)

    def send_body(self, key: int, version: int, body: bytes, *, expect_response: bool = True) -> None:
        """Send a request whose body is already bytes."""
        self._correlation_id += 1
        if expect_response:
            self._expected.append((key, version, self._correlation_id))
        self.send_bytes(framed([encode_request_header(key, version, self._correlation_id, "wire"), body]))

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> Any:
        """The response to the oldest request that has none yet."""
        key, version, correlation_id = self._expected.popleft()
        payload = self.receive_frame()
        answered, position = decode_response_header(key, version, payload, 0, len(payload))
        assert answered == correlation_id
        return codec.decode(registry.response_class(key), version, payload[position:])

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive_exactly(4))
        return self._receive_exactly(size)

    def is_closed_by_broker(self) -> bool:
        """Waits until the broker closes the connection; False when it sends something instead."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _receive_exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            try:
                chunk = self._socket.recv(size - len(received))
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                raise ConnectionClosedError(f"closed by the broker after {len(received)} of {size} bytes")
            received += chunk
        return bytes(received)
