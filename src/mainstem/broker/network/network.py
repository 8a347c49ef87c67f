"""All connections of a node: accepting them, their shared buffers, closing the idle ones, and closing
them all.
"""

import asyncio
import logging
import select
import socket
from collections.abc import Callable, Mapping

from mainstem.broker.clock import Clock
from mainstem.broker.network.buffers import SHARED_BUFFER_BYTES, BufferPool, RequestMemory, huge_page_buffer
from mainstem.broker.network.connection import Connection
from mainstem.broker.network.listener import Acceptor, BoundListener, ConnectionLimits
from mainstem.broker.network.output import EndOfPass
from mainstem.broker.network.transport import PlainTransport
from mainstem.broker.requests.dispatch import Dispatcher
from mainstem.broker.turns import Turns
from mainstem.config import BrokerConfig, ConfigSource, per_ip_overrides
from mainstem.config.listeners import Listener
from mainstem.logs import about

logger = logging.getLogger(__name__)

_CHECKED_PER_SECOND = 1000  # how many connections the look for broken ones may take on, on average
_TCP_CONGESTION = getattr(socket, "TCP_CONGESTION", 0)  # Linux has it
_REQUEST_MEMORY_WHEN_NOT_SET_BYTES = 512 * 1024 * 1024


def send_unpaced(sock: socket.socket, host: str) -> None:
    """BBR, which some systems use for every connection, spreads what it sends over time in small pieces. To a
    client on the same machine that gains nothing, and takes four times as much of the processor.
    """
    if host == "::1" or host.startswith("127."):
        in_use = sock.getsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, 16) if _TCP_CONGESTION else b""
        if in_use.startswith(b"bbr"):
            sock.setsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, b"reno")  # the one that every Linux has


class Network:
    """The host of the connections; frames go on to the dispatcher."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        turns: Turns,
        clock: Clock,
        config: BrokerConfig,
        dispatcher: Dispatcher,
    ) -> None:
        self.loop = loop
        self.turns = turns
        self.receive_view = huge_page_buffer()[:SHARED_BUFFER_BYTES]
        self.buffer_pool = BufferPool()
        meters = dispatcher.meters
        self.end_of_pass = EndOfPass(loop, clock.ticks_ns, meters.page_reads if meters is not None else None)
        queued_bytes_max = config.get("queued.max.request.bytes")
        self.request_memory = RequestMemory(
            queued_bytes_max if queued_bytes_max > 0 else _REQUEST_MEMORY_WHEN_NOT_SET_BYTES
        )
        self.frame_bytes_max: int = config.get("socket.request.max.bytes")
        self.handle_frame = dispatcher.handle_frame
        self.connections: dict[Connection, int] = {}  # with their file descriptors
        self.accepted = 0
        self.refused = 0
        self._config = config
        self._acceptors: list[Acceptor] = []
        self._started: list[Acceptor] = []
        self._on_closed: dict[Connection, Callable[[], None]] = {}
        self._limits = ConnectionLimits(*_limits_of(config))
        self._idle_timer: asyncio.TimerHandle | None = None
        self._broken_timer: asyncio.TimerHandle | None = None

    def bind(self, listeners: list[Listener]) -> list[BoundListener]:
        """Bind every listener; none accepts yet."""
        backlog = None
        if self._config.source("socket.listen.backlog.size") is not ConfigSource.DEFAULT_CONFIG:
            backlog = self._config.get("socket.listen.backlog.size")
        for listener in listeners:
            self._acceptors.append(Acceptor(self.loop, listener, self._limits, self._on_accept, backlog))
        return [acceptor.bound for acceptor in self._acceptors]

    @property
    def listener_names(self) -> list[str]:
        return [acceptor.bound.name for acceptor in self._acceptors]

    def start(self, *, controllers: bool) -> None:
        """Accept connections on the listeners of controllers, or on all others."""
        if not self._started:
            self._schedule_idle_check()
            self._close_broken()
        for acceptor in self._acceptors:
            if acceptor.bound.is_controller is controllers:
                self._started.append(acceptor)
                acceptor.resume()

    def stop_accepting(self) -> None:
        for acceptor in self._acceptors:
            acceptor.close()
        self._acceptors.clear()
        self._started.clear()

    def close(self) -> None:
        """Close every connection; whatever is parked on them is cancelled."""
        self.stop_accepting()
        for timer in (self._idle_timer, self._broken_timer):
            if timer is not None:
                timer.cancel()
        for connection in list(self.connections):
            connection.close()

    def update_config(self, config: BrokerConfig) -> None:
        """The limits of connections may change while the broker runs."""
        self._limits.update(*_limits_of(config))
        if not self._limits.full:
            for acceptor in self._started:
                acceptor.resume()

    def when_closed(self, connection: Connection, callback: Callable[[], None]) -> None:
        """Call back when this connection is closed, whoever closes it; only the last callback counts."""
        self._on_closed[connection] = callback

    def connection_closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        if self._on_closed:
            callback = self._on_closed.pop(connection, None)
            if callback is not None:
                callback()
        was_full = self._limits.full
        self._limits.remove(connection.client_host)
        if was_full:
            for acceptor in self._started:
                acceptor.resume()

    def _on_accept(self, listener: Listener, sock: socket.socket, host: str) -> None:
        self.accepted += 1
        if not self._limits.try_add(host):
            self.refused += 1
            logger.warning(
                "closing a connection from %s: it has max.connections.per.ip already",
                host,
                extra=about(client=host),
            )
            sock.close()
            return
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._size_buffers(sock)
            send_unpaced(sock, host)
        except OSError:
            self._limits.remove(host)
            sock.close()
            return
        transport = PlainTransport(self.loop, sock)
        self.connections[Connection(self, transport, listener, host)] = transport.fd

    def _size_buffers(self, sock: socket.socket) -> None:
        """Kafka's own defaults (100 KiB) are far below what the system tunes by itself: only a given size
        is set.
        """
        for name, option in (
            ("socket.receive.buffer.bytes", socket.SO_RCVBUF),
            ("socket.send.buffer.bytes", socket.SO_SNDBUF),
        ):
            size = self._config.get(name)
            if size > 0 and self._config.source(name) is not ConfigSource.DEFAULT_CONFIG:
                sock.setsockopt(socket.SOL_SOCKET, option, size)

    def _schedule_idle_check(self) -> None:
        idle_ms = self._config.get("connections.max.idle.ms")
        if idle_ms > 0:
            self._idle_timer = self.loop.call_later(
                max(idle_ms / 4000, 0.05), self._close_idle, idle_ms / 1000
            )

    def _close_idle(self, idle_seconds: float) -> None:
        deadline = self.loop.time() - idle_seconds
        for connection in list(self.connections):
            active = max(connection.last_active, connection.output.last_progress)
            if active < deadline and not connection.parked:
                connection.close()
        self._schedule_idle_check()

    def _close_broken(self) -> None:
        """Close what its client has reset. A reset that comes together with the last data shows only once on
        uvloop, and a connection that does not read at the moment does not see it at all.
        """
        poller = select.poll()
        by_fd = {fd: connection for connection, fd in self.connections.items()}
        for fd in by_fd:
            poller.register(fd, 0)
        for fd, _ in poller.poll(0):
            by_fd[fd].close()
        seconds = max(1.0, len(by_fd) / _CHECKED_PER_SECOND)
        self._broken_timer = self.loop.call_later(seconds, self._close_broken)


def _limits_of(config: BrokerConfig) -> tuple[int, int, dict[str, int]]:
    return (
        config.get("max.connections"),
        config.get("max.connections.per.ip"),
        _resolved(per_ip_overrides(config)),
    )


def _resolved(overrides: Mapping[str, int]) -> dict[str, int]:
    """The per-address limits by the addresses that accepted sockets show; a name may stand for several."""
    resolved = {}
    for host, limit in overrides.items():
        try:
            addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            logger.warning("max.connections.per.ip.overrides names %s, which has no address: %s", host, error)
            continue
        for _, _, _, _, address in addresses:
            resolved[str(address[0])] = limit
    return resolved
