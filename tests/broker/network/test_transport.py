"""A connection over another transport than a socket, and many of them that send without end."""

import asyncio
import itertools
import os
import struct
from collections.abc import Callable

import pytest

from mainstem.broker.clock import Clock
from mainstem.broker.network.buffers import BufferPool, RequestMemory
from mainstem.broker.network.connection import Connection
from mainstem.broker.network.output import EndOfPass
from mainstem.broker.network.transport import Readable
from mainstem.broker.turns import Turns
from mainstem.config.listeners import Listener
from mainstem.testing.in_process import InProcessBroker
from tests.broker.harness import (
    API_VERSIONS,
    Client,
    ask,
    batch,
    create_topic,
    fetch_request,
    produce_request,
    values_of,
)
from tests.broker.test_turns import HandClock

LISTENER = Listener("MEMORY", "memory", 0, "PLAINTEXT", "memory", 0, is_controller=False)


class MemoryTransport:
    """Bytes in memory: what the client has sent, and what it has received of as much as it takes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, takes: int = 1 << 30) -> None:
        self._loop = loop
        self.sent = bytearray()
        self.received = bytearray()
        self.takes = takes
        self.from_files = 0
        self.ended = False
        self.closed = False
        self._on_readable: Callable[[], None] | None = None
        self._on_writable: Callable[[], None] | None = None

    def client_sends(self, data: bytes) -> None:
        self.sent += data
        self._loop.call_soon(self._tell_readable)

    def client_ends(self) -> None:
        """It sends no more."""
        self.ended = True
        self._loop.call_soon(self._tell_readable)

    def client_takes(self, count: int) -> None:
        self.takes += count
        self._loop.call_soon(self._tell_writable)

    def _tell_readable(self) -> None:
        """As a selector does, again and again while there is something."""
        if (self.sent or self.ended) and self._on_readable is not None:
            self._on_readable()
            self._loop.call_soon(self._tell_readable)

    def _tell_writable(self) -> None:
        if self.takes and self._on_writable is not None:
            self._on_writable()
            self._loop.call_soon(self._tell_writable)

    def recv_into(self, view: memoryview) -> int:
        count = min(len(view), len(self.sent))
        if not count and not self.ended:
            raise BlockingIOError
        view[:count] = self.sent[:count]
        del self.sent[:count]
        return count

    def send(self, data: Readable) -> int:
        count = min(len(data), self.takes)
        if not count:
            raise BlockingIOError
        self.takes -= count
        self.received += data[:count]
        return count

    def send_with_more(self, data: Readable) -> int:
        return self.send(data)

    def send_file(self, fd: int, position: int, count: int) -> int:
        sent = self.send(os.pread(fd, min(count, max(self.takes, 1)), position))
        self.from_files += sent
        return sent

    def when_readable(self, callback: Callable[[], None] | None) -> None:
        self._on_readable = callback
        if callback is not None:
            self._loop.call_soon(self._tell_readable)

    def when_writable(self, callback: Callable[[], None] | None) -> None:
        self._on_writable = callback
        if callback is not None:
            self._loop.call_soon(self._tell_writable)

    def close(self) -> None:
        self.closed = True

    async def frame(self) -> bytes:
        """The next one that the client has received."""
        while len(self.received) < 4 or len(self.received) < 4 + struct.unpack_from(">i", self.received)[0]:
            await asyncio.sleep(0)
        (size,) = struct.unpack_from(">i", self.received)
        frame = bytes(self.received[4 : 4 + size])
        del self.received[: 4 + size]
        return frame


@pytest.mark.parametrize("takes", [1 << 30, 1000])
async def test_a_client_is_served_over_another_transport(
    client: Client, broker: InProcessBroker, takes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await create_topic(client)
    network = broker.node.server.network
    assert network is not None
    transport = MemoryTransport(asyncio.get_running_loop(), takes)
    connection = Connection(network, transport, LISTENER, "memory")
    monkeypatch.setitem(network.connections, connection, -1)
    network._limits.try_add("memory")
    reader = asyncio.StreamReader()
    monkeypatch.setattr(client, "reader", reader)

    async def call(request: object) -> object:
        transport.client_sends(client.encode(request))
        if takes < 1 << 20:
            for _ in range(40):
                await asyncio.sleep(0)
                transport.client_takes(takes)
        payload = await transport.frame()
        reader.feed_data(struct.pack(">i", len(payload)) + payload)
        return await client.receive()

    assert (await call(API_VERSIONS)).api_keys  # type: ignore[attr-defined]
    values = [b"%d" % number * 2000 for number in range(3)]
    for value in values:
        produced = await call(produce_request(topic, {0: batch(value)}))
        assert produced.responses[0].partition_responses[0].error_code == 0  # type: ignore[attr-defined]
    fetched = await call(fetch_request({topic: [ask()]}))
    assert values_of(fetched.responses[0].partitions[0].records) == values  # type: ignore[attr-defined]
    assert transport.from_files > sum(map(len, values))
    connection.close()
    assert transport.closed


class Host:
    """What connections need, with a clock that moves with every request."""

    def __init__(self, loop: asyncio.AbstractEventLoop, request_ms: float) -> None:
        self.loop = loop
        self.receive_view = memoryview(bytearray(256 * 1024))
        self.buffer_pool = BufferPool()
        self.request_memory = RequestMemory(1 << 30)
        self.end_of_pass = EndOfPass(loop, Clock.ticks_ns)
        self.clock = HandClock()
        self.turns = Turns(loop, self.clock)
        self.frame_bytes_max = 1 << 20
        self.request_ms = request_ms
        self.answered: list[str] = []

    def handle_frame(self, connection: Connection, frame: memoryview, start: int, end: int) -> bytes:
        self.clock.passes_ms(self.request_ms)
        self.answered.append(connection.client_host)
        return bytes(frame[start - 4 : end])

    def connection_closed(self, connection: Connection) -> None: ...

    def connect(self, name: str) -> MemoryTransport:
        transport = MemoryTransport(self.loop)
        Connection(self, transport, LISTENER, name)
        return transport


REQUEST = struct.pack(">ihhi", 8, 18, 0, 1)
REQUESTS = 500


async def test_connections_that_send_without_end_take_turns() -> None:
    host = Host(asyncio.get_running_loop(), request_ms=0.1)
    flooding = [host.connect(str(number)) for number in range(10)]
    for transport in flooding:
        transport.client_sends(REQUEST * REQUESTS)
    while len(host.answered) < 10 * REQUESTS // 2:
        await asyncio.sleep(0)
    newcomer = host.connect("new")
    newcomer.client_sends(REQUEST)
    before = len(host.answered)
    await newcomer.frame()
    while len(host.answered) < 10 * REQUESTS + 1:
        await asyncio.sleep(0)
    turns = [(name, len(list(group))) for name, group in itertools.groupby(host.answered)]
    assert max(length for _, length in turns) <= 32, "a turn is a millisecond, looked at every 16 requests"
    assert host.answered[before:].index("new") <= 2 * 32, "others had two turns at most"
    names = [name for name, _ in turns if name != "new"]
    assert names == [str(number % 10) for number in range(len(names))], "each as often as every other"
    assert all(len(transport.received) == REQUESTS * len(REQUEST) for transport in flooding)


async def test_what_a_client_sent_before_its_end_is_answered_in_later_turns() -> None:
    host = Host(asyncio.get_running_loop(), request_ms=0.1)
    transport = host.connect("ends")
    transport.client_sends(REQUEST * REQUESTS)
    while not host.answered:
        await asyncio.sleep(0)
    assert len(host.answered) < REQUESTS
    transport.client_ends()
    while not transport.closed:
        await asyncio.sleep(0)
    assert len(transport.received) == REQUESTS * len(REQUEST)
