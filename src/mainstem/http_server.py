"""A small HTTP/1.1 server for GET requests without a body: one request for each connection.

What it is given comes from anybody who reaches the port, so everything is bounded: the size of a request,
the time to send it and to take the answer, the number of connections. A client that is slow loses its
connection and costs nobody else anything.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple, cast

logger = logging.getLogger(__name__)

_REQUEST_BYTES_MAX: Final = 8192
_CONNECTIONS_MAX: Final = 32
_SECONDS_TO_ASK: Final = 5.0
_SECONDS_TO_TAKE: Final = 30.0
_WRITE_BUFFER_BYTES: Final = 1024 * 1024


class HttpAnswer(NamedTuple):
    """What a page answers."""

    status: HTTPStatus
    content_type: str
    body: Sequence[bytes]


PLAIN: Final = "text/plain; charset=utf-8"
Page = Callable[[], Awaitable[HttpAnswer]]


def text_answer(status: HTTPStatus, text: str) -> HttpAnswer:
    return HttpAnswer(status, PLAIN, [text.encode()])


class HttpServer:
    """Serves pages by their path on sockets that are bound already."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sockets: list[socket.socket],
        pages: Mapping[str, Page],
        *,
        seconds_to_ask: float = _SECONDS_TO_ASK,
        seconds_to_take: float = _SECONDS_TO_TAKE,
    ) -> None:
        self.loop = loop
        self.pages = pages
        self.seconds_to_ask = seconds_to_ask
        self.seconds_to_take = seconds_to_take
        self.connections: set[HttpConnection] = set()
        self._sockets = sockets
        self._servers: list[asyncio.Server] = []

    @property
    def port(self) -> int:
        return int(self._sockets[0].getsockname()[1])

    async def start(self) -> None:
        for sock in self._sockets:
            server = await self.loop.create_server(lambda: HttpConnection(self), sock=sock)
            self._servers.append(server)

    def close(self) -> None:
        for server in self._servers:
            server.close()
        for sock in self._sockets:
            sock.close()
        for connection in list(self.connections):
            connection.abort()


class HttpConnection(asyncio.Protocol):
    """One request and its answer."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._timer: asyncio.TimerHandle | None = None
        self._answering: asyncio.Task[None] | None = None
        self._drained: asyncio.Event | None = None

    # ---- of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by inheritance
        if len(self._server.connections) >= _CONNECTIONS_MAX:
            self._transport.abort()
            return
        self._server.connections.add(self)
        self._transport.set_write_buffer_limits(_WRITE_BUFFER_BYTES)
        self._limit(self._server.seconds_to_ask)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._server.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._answering is not None:
            self._answering.cancel()

    def data_received(self, data: bytes) -> None:
        if self._answering is not None:
            return
        self._received += data
        if b"\r\n\r\n" not in self._received and b"\n\n" not in self._received:
            if len(self._received) <= _REQUEST_BYTES_MAX:
                return
            answer = self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request is too long\n")
        else:
            answer = self._answer(self._received.split(b"\n", 1)[0])
        if self._transport is not None:
            self._transport.pause_reading()
        self._received = b""
        self._limit(self._server.seconds_to_take)
        self._answering = self._server.loop.create_task(answer)

    def eof_received(self) -> bool:
        return self._answering is not None  # whoever has asked may still be waiting for the answer

    def pause_writing(self) -> None:
        self._drained = asyncio.Event()

    def resume_writing(self) -> None:
        if self._drained is not None:
            self._drained.set()
            self._drained = None

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _limit(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._server.loop.call_later(seconds, self.abort)

    # ---- answering

    async def _refuse(self, status: HTTPStatus, text: str) -> None:
        await self._send(text_answer(status, text), with_body=True)

    async def _answer(self, request_line: bytes) -> None:
        method, _, rest = request_line.decode("latin-1").strip().partition(" ")
        target, _, version = rest.rpartition(" ")
        page = self._server.pages.get(target.partition("?")[0])
        if not version.startswith("HTTP/1.") or not target.startswith("/"):
            await self._refuse(HTTPStatus.BAD_REQUEST, "this is no HTTP/1.1 request\n")
        elif method not in ("GET", "HEAD"):
            await self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is served\n")
        elif page is None:
            await self._refuse(HTTPStatus.NOT_FOUND, f"there is {', '.join(self._server.pages)}\n")
        else:
            try:
                answer = await page()
            except Exception:
                logger.exception("%s cannot be answered", target.partition("?")[0])
                answer = text_answer(HTTPStatus.INTERNAL_SERVER_ERROR, "see the log\n")
            await self._send(answer, with_body=method == "GET")

    async def _send(self, answer: HttpAnswer, *, with_body: bool) -> None:
        head = (
            f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
            f"Content-Type: {answer.content_type}\r\n"
            f"Content-Length: {sum(map(len, answer.body))}\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        for chunk in (head.encode(), *(answer.body if with_body else ())):
            if self._drained is not None:
                await self._drained.wait()
            if self._transport is None:
                return
            self._transport.write(chunk)
        if self._transport is not None:
            self._transport.close()
