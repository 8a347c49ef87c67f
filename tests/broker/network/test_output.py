"""The output of a connection: bytes and file ranges leave whole and in order, whatever the kernel takes."""

import asyncio
import os
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mainstem.broker.clock import Clock
from mainstem.broker.network import output as output_module
from mainstem.broker.network.output import Chunk, EndOfPass, OutputQueue
from mainstem.broker.network.transport import PlainTransport
from mainstem.storage.files.file_range import FileHandle, FileRange
from mainstem.storage.files.real_files import RealFiles


class Wire:
    """A queue with the client's end of its socket."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.server, self.client = socket.socketpair()
        for sock in (self.server, self.client):
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        self.drained = 0
        self.errors: list[OSError] = []
        end_of_pass = EndOfPass(loop, Clock.ticks_ns)
        transport = PlainTransport(loop, self.server)
        self.queue = OutputQueue(loop, end_of_pass, transport, self.on_drained, self.on_error)

    def on_drained(self) -> None:
        self.drained += 1

    def on_error(self, error: OSError) -> None:
        self.errors.append(error)
        self.queue.close()

    async def read(self, size: int) -> bytes:
        loop = asyncio.get_running_loop()
        received = bytearray()
        while len(received) < size:
            chunk = await loop.sock_recv(self.client, random.randrange(1, 65536))
            assert chunk
            received += chunk
        return bytes(received)

    def close(self) -> None:
        self.queue.close()
        self.server.close()
        self.client.close()


@pytest.fixture
def wire(runner: asyncio.Runner) -> Iterator[Wire]:
    async def make() -> Wire:
        return Wire(asyncio.get_running_loop())

    wire = runner.run(make())
    yield wire
    wire.close()


def file_range(path: Path, data: bytes, skip: int = 0) -> FileRange:
    path.write_bytes(bytes(skip) + data + b"not this")
    return FileRange(FileHandle(RealFiles(), os.open(path, os.O_RDONLY)), skip, len(data))


async def test_bytes_and_ranges_leave_in_order_through_a_narrow_socket(wire: Wire, tmp_path: Path) -> None:
    rng = random.Random(7)
    expected = bytearray()
    chunks: list[Chunk] = []
    for number in range(40):
        data = rng.randbytes(rng.choice((0, 1, 17, 5_000, 300_000)))
        expected += data
        if number % 2 and data:
            chunks.append(file_range(tmp_path / str(number), data, skip=rng.randrange(5000)))
        else:
            chunks.append(data)
    wire.queue.send_chunks(chunks)
    assert wire.queue.chunks
    assert await wire.read(len(expected)) == expected
    while wire.queue.chunks:
        await asyncio.sleep(0)
    assert not wire.errors


async def test_more_responses_queue_behind_an_unsent_one(wire: Wire, tmp_path: Path) -> None:
    data = os.urandom(500_000)
    wire.queue.send_chunks([b"head", file_range(tmp_path / "f", data), b"tail"])
    wire.queue.send(b"second")
    wire.queue.send_chunks([b"third", file_range(tmp_path / "g", data)])
    expected = b"head" + data + b"tail" + b"second" + b"third" + data
    assert await wire.read(len(expected)) == expected


async def test_a_response_while_cold_pages_are_read_waits_its_turn(
    wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = os.urandom(3_000_000)
    monkeypatch.setattr(output_module, "_is_cached", lambda fd, position, count: False)
    wire.queue.send_chunks([b"head", file_range(tmp_path / "f", data)])
    wire.queue.send(b"second")
    wire.queue.send_chunks([b"third", file_range(tmp_path / "g", data), b"end"])
    wire.queue.send(b"last")
    expected = b"head" + data + b"second" + b"third" + data + b"end" + b"last"
    assert await wire.read(len(expected)) == expected
    while wire.queue.chunks:
        await asyncio.sleep(0)
    assert not wire.errors
    assert wire.drained > 0


async def test_closing_while_cold_pages_are_read_is_quiet(
    wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_module, "_is_cached", lambda fd, position, count: False)
    wire.queue.send_chunks([file_range(tmp_path / "f", os.urandom(100_000))])
    wire.queue.close()
    await asyncio.sleep(0.05)
    assert not wire.errors
    assert wire.drained == 0


async def test_a_client_that_is_gone_is_an_error_not_an_exception(wire: Wire, tmp_path: Path) -> None:
    wire.client.close()
    wire.queue.send(b"hello")
    assert len(wire.errors) == 1
    wire.queue.send_chunks([file_range(tmp_path / "f", b"data")])
    assert len(wire.errors) == 2


async def test_a_client_that_leaves_while_something_is_queued_is_an_error(wire: Wire) -> None:
    wire.queue.send(bytes(2_000_000))
    assert wire.queue.chunks
    wire.client.close()
    while not wire.errors:
        await asyncio.sleep(0)
    assert not wire.queue.chunks


async def test_a_range_beyond_its_file_is_an_error(wire: Wire, tmp_path: Path) -> None:
    path = tmp_path / "cut"
    cut = file_range(path, bytes(50_000))
    os.truncate(path, 10)
    wire.queue.send_chunks([cut])
    while not wire.errors:
        await asyncio.sleep(0)
    assert not wire.queue.chunks


async def test_the_queue_says_once_that_it_is_empty_again(wire: Wire) -> None:
    wire.queue.send(b"at once")
    assert wire.drained == 0
    wire.queue.send(bytes(1_000_000))
    await wire.read(1_000_007)
    while wire.queue.chunks:
        await asyncio.sleep(0)
    assert wire.drained == 1


async def test_what_waits_for_the_end_of_the_pass_leaves_before_whatever_comes_later(
    wire: Wire, tmp_path: Path
) -> None:
    wire.queue.send_at_end_of_pass(b"1")
    wire.queue.send_at_end_of_pass(b"2")
    wire.queue.send(b"3")
    wire.queue.send_at_end_of_pass(b"4")
    wire.queue.send_chunks([file_range(tmp_path / "f", b"5"), b"6"])
    wire.queue.send_at_end_of_pass(b"7")
    assert await wire.read(7) == b"1234567"
