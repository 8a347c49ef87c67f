"""Many connections and timers in one thread. A connection carries one request at a time, like a member's own
connection to its coordinator.

Deliberately not asyncio: between an answer and the next request stands nothing but the member's own code.
"""

import gc
import heapq
import itertools
import selectors
import socket
import struct
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Self

from bench.errors import BenchError
from mainstem.protocol import codec, registry
from mainstem.protocol.headers import decode_response_header, encode_request_header
from mainstem.wire.frames import framed

_CLIENT_ID = "bench"
_BUFFER = memoryview(bytearray(1 << 18))  # what was received is copied out of it at once
_SIZE = struct.Struct(">i")

OnAnswer = Callable[[Any], None]


class Driver:
    """Runs members against the broker on one port of this machine."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._channels: list[Channel] = []

    def __enter__(self) -> Self:
        gc.disable()  # a collection between two requests would be measured
        return self

    def __exit__(self, *error: object) -> None:
        gc.enable()
        self._selector.close()
        for channel in self._channels:
            channel.close()

    def connect(self) -> "Channel":
        connection = socket.create_connection(("127.0.0.1", self._port), timeout=30)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        channel = Channel(connection)
        self._selector.register(connection, selectors.EVENT_READ, channel)
        self._channels.append(channel)
        return channel

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._numbers), callback))

    def run_until(self, is_done: Callable[[], bool], timeout_s: float, what: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_done():
            if time.monotonic() > deadline:
                raise BenchError(f"{what} took longer than {timeout_s:.0f} s")
            self._turn(deadline)

    def run_for(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._turn(deadline)

    def _turn(self, deadline: float) -> None:
        until = min(deadline, self._timers[0][0]) if self._timers else deadline
        for key, _ in self._selector.select(max(0.0, until - time.monotonic())):
            key.data.on_readable()
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            heapq.heappop(self._timers)[2]()


class Channel:
    """One connection with at most one request on its way."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._received = bytearray()
        self._correlation_id = 0
        self._waiting: tuple[int, int, OnAnswer] | None = None

    @property
    def is_busy(self) -> bool:
        return self._waiting is not None

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: Any, version: int, on_answer: OnAnswer) -> None:
        """Send a request; `on_answer` gets its response during some turn of the driver."""
        if self._waiting is not None:
            raise BenchError("a member asks again before it was answered")
        key = request.SCHEMA.api_key
        self._correlation_id += 1
        self._waiting = (key, version, on_answer)
        header = encode_request_header(key, version, self._correlation_id, _CLIENT_ID)
        self._socket.sendall(framed([header, codec.encode(request, version)]))

    def on_readable(self) -> None:
        count = self._socket.recv_into(_BUFFER)
        if not count:
            raise BenchError("the broker closed a member's connection")
        received = self._received
        received += _BUFFER[:count]
        if len(received) < _SIZE.size or len(received) < _SIZE.size + _SIZE.unpack_from(received)[0]:
            return
        payload = bytes(memoryview(received)[_SIZE.size :])
        received.clear()
        if self._waiting is None:
            raise BenchError("the broker answered what nobody asked")
        (key, version, on_answer), self._waiting = self._waiting, None
        answered, position = decode_response_header(key, version, payload, 0, len(payload))
        if answered != self._correlation_id:
            raise BenchError("answers came out of order")
        on_answer(_decoder(key, version)(payload, position, len(payload))[0])


@cache
def _decoder(key: int, version: int) -> Callable[[bytes, int, int], tuple[Any, int]]:
    return codec.decoder(registry.response_class(key), version)


def ask(port: int, request: Any, version: int, timeout_s: float = 60.0) -> Any:
    """One request on a connection of its own."""
    answers: list[Any] = []
    with Driver(port) as driver:
        driver.connect().ask(request, version, answers.append)
        driver.run_until(lambda: bool(answers), timeout_s, type(request).__name__)
    return answers[0]
