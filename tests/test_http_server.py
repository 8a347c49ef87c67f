"""The HTTP server: its pages, and what becomes of clients that are slow, wrong or many."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest

from mainstem.http_server import HttpAnswer, HttpServer
from tests.broker.harness import eventually
from tests.broker.scraping import ask, send

pytestmark = pytest.mark.usefixtures("runner")

LARGE = [b"x" * 100_000] * 400


async def _large() -> HttpAnswer:
    return HttpAnswer(HTTPStatus.OK, "text/plain", LARGE)


async def _broken() -> HttpAnswer:
    raise ValueError("a page that fails")


@asynccontextmanager
async def served(**limits: float) -> AsyncIterator[HttpServer]:
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    pages = {"/large": _large, "/broken": _broken}
    server = HttpServer(asyncio.get_running_loop(), [sock], pages, **limits)
    await server.start()
    try:
        yield server
    finally:
        server.close()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"GET /nothing HTTP/1.1\r\n\r\n", 404),
        (b"GET http://elsewhere/metrics HTTP/1.1\r\n\r\n", 400),
        (b"GET /metrics\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET /broken HTTP/1.1\r\n\r\n", 500),
    ],
)
async def test_what_is_wrong_is_refused(request_bytes: bytes, status: int) -> None:
    async with served() as server:
        assert (await send(server.port, request_bytes)).status == status


async def test_a_request_without_an_end_is_cut_off() -> None:
    async with served() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000)
        try:
            assert (await reader.read()).startswith(b"HTTP/1.1 431 ")
        except ConnectionResetError:
            pass  # the rest of the request was not read any more
        writer.close()
        await eventually(lambda: not server.connections)


async def test_who_is_slow_to_ask_loses_the_connection() -> None:
    async with served(seconds_to_ask=0.05) as server:
        assert (await send(server.port, b"GET /lar")).status == 0
        await eventually(lambda: not server.connections)


async def test_who_does_not_take_the_answer_loses_the_connection() -> None:
    async with served(seconds_to_take=0.3) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
        writer.write(b"GET /large HTTP/1.1\r\n\r\n")
        await eventually(lambda: bool(server.connections))
        await eventually(lambda: not server.connections)
        writer.close()


async def test_a_large_answer_comes_whole() -> None:
    async with served() as server:
        answer = await send(server.port, b"GET /large HTTP/1.1\r\n\r\n")
        assert len(answer.body) == sum(map(len, LARGE))


async def test_many_connections_do_not_add_up() -> None:
    async with served() as server:
        opened = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(40)]
        await eventually(lambda: len(server.connections) == 32)
        for _, writer in opened:
            writer.close()
        await eventually(lambda: not server.connections)
        assert (await ask(server.port, "/large")).status == 200
