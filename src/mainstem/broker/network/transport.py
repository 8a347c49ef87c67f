"""What a connection does with its socket: receive, send, send from a file, wait until it can.

A connection knows only a `Transport`, so that its bytes can go another way, encrypted or through a
simulation. The methods are looked up once for each connection, and are the socket's own where they can be.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Protocol

Readable = bytes | bytearray | memoryview


class Transport(Protocol):
    """One stream of bytes to and from a client. What cannot go on at once raises BlockingIOError; any other
    OSError is the end of it.
    """

    @property
    def recv_into(self) -> Callable[[memoryview], int]:
        """Fills a view as far as there is something; 0 when the client sends no more."""

    @property
    def send(self) -> Callable[[Readable], int]:
        """Sends the beginning of the data; how many bytes were taken."""

    def send_with_more(self, data: Readable) -> int:
        """The same, when something else follows at once."""

    def send_file(self, fd: int, position: int, count: int) -> int:
        """The same with bytes of an open file; 0 at its end."""

    def when_readable(self, callback: Callable[[], None] | None) -> None:
        """Call back whenever there is something to receive; with None not any more."""

    def when_writable(self, callback: Callable[[], None] | None) -> None:
        """Call back whenever something can be sent; with None not any more."""

    def close(self) -> None: ...


class PlainTransport:
    """A socket without encryption: the kernel copies from the page cache to the client."""

    __slots__ = ("_loop", "_sock", "fd", "recv_into", "send")

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        self._loop = loop
        self._sock = sock
        self.fd = sock.fileno()
        self.recv_into: Callable[[memoryview], int] = sock.recv_into
        self.send: Callable[[Readable], int] = sock.send

    def send_with_more(self, data: Readable) -> int:
        return self._sock.send(data, socket.MSG_MORE)

    def send_file(self, fd: int, position: int, count: int) -> int:
        return os.sendfile(self.fd, fd, position, count)

    def when_readable(self, callback: Callable[[], None] | None) -> None:
        if callback is not None:
            self._loop.add_reader(self.fd, callback)
        else:
            self._loop.remove_reader(self.fd)

    def when_writable(self, callback: Callable[[], None] | None) -> None:
        if callback is not None:
            self._loop.add_writer(self.fd, callback)
        else:
            self._loop.remove_writer(self.fd)

    def close(self) -> None:
        self._sock.close()
