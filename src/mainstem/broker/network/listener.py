"""Listeners: bind, accept, and keep to the connection limits.

One named listener may hold several sockets, because `localhost` is both 127.0.0.1 and ::1. A client
address over its own limit is closed at once; at the limit of the whole broker new connections wait in the
backlog.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from typing import Final, NamedTuple

from mainstem.broker.errors import StartupError
from mainstem.config.listeners import Listener

logger = logging.getLogger(__name__)

_ACCEPTS_PER_TURN: Final = 64
_FREE_PORT_TRIES: Final = 5
_BACKLOG_WHEN_NOT_SET: Final = 4096  # Kafka's default of 50 overflows when a fleet reconnects at once


class BoundListener(NamedTuple):
    """Where a listener really listens, and what clients are told to dial."""

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int
    protocol: str
    is_controller: bool


class GivenBy(NamedTuple):
    """How a person says where to listen, for messages."""

    host: str
    port: str


_LISTENERS: Final = GivenBy(host="`listeners` (or --host)", port="--port")


class ConnectionLimits:
    """Counts connections; says whether another one may be served."""

    def __init__(self, total_max: int, per_ip_max: int, per_ip_overrides: dict[str, int]) -> None:
        self._total_max = total_max
        self._per_ip_max = per_ip_max
        self._per_ip_overrides = per_ip_overrides
        self._per_ip: dict[str, int] = {}
        self.total = 0

    def update(self, total_max: int, per_ip_max: int, per_ip_overrides: dict[str, int]) -> None:
        """Take new limits. Connections above them stay; only new ones are measured by them."""
        self._total_max = total_max
        self._per_ip_max = per_ip_max
        self._per_ip_overrides = per_ip_overrides

    @property
    def full(self) -> bool:
        return self.total >= self._total_max

    def try_add(self, host: str) -> bool:
        count = self._per_ip.get(host, 0)
        if count >= self._per_ip_overrides.get(host, self._per_ip_max):
            return False
        self._per_ip[host] = count + 1
        self.total += 1
        return True

    def remove(self, host: str) -> None:
        self.total -= 1
        count = self._per_ip[host] - 1
        if count:
            self._per_ip[host] = count
        else:
            del self._per_ip[host]


class Acceptor:
    """The sockets of one named listener. `on_accept` gets each new client socket with its address."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener: Listener,
        limits: ConnectionLimits,
        on_accept: Callable[[Listener, socket.socket, str], None],
        backlog: int | None,
    ) -> None:
        self._loop = loop
        self._limits = limits
        self._on_accept = on_accept
        self._listener = listener
        self._paused = True
        self._sockets = bind(listener, backlog or _BACKLOG_WHEN_NOT_SET)
        port = int(self._sockets[0].getsockname()[1])
        self.bound = BoundListener(
            listener.name,
            listener.host,
            port,
            listener.advertised_host,
            listener.advertised_port or port,
            listener.protocol,
            listener.is_controller,
        )

    def resume(self) -> None:
        """Accept connections; also after there is room under the limit again."""
        if self._paused and self._sockets:
            self._paused = False
            for sock in self._sockets:
                self._loop.add_reader(sock.fileno(), self._accept, sock)

    def pause(self) -> None:
        if not self._paused:
            self._paused = True
            for sock in self._sockets:
                self._loop.remove_reader(sock.fileno())

    def close(self) -> None:
        self.pause()
        for sock in self._sockets:
            sock.close()
        self._sockets = []

    def _accept(self, sock: socket.socket) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            if self._limits.full:
                logger.warning("max.connections is reached: new connections wait until others close")
                self.pause()
                return
            try:
                client, address = sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    raise
                logger.error("cannot accept a connection: %s; trying again in a second", error)
                self.pause()
                self._loop.call_later(1.0, self.resume)
                return
            # An IPv4 client of an IPv6 socket goes by the address that it and the settings know.
            self._on_accept(self._listener, client, address[0].removeprefix("::ffff:"))


def bind(listener: Listener, backlog: int, given_by: GivenBy = _LISTENERS) -> list[socket.socket]:
    """Bind every address of the listener's host, all on one port.

    A free port that the system chose for one address may be taken on the next; then another is chosen.
    """
    for _ in range(_FREE_PORT_TRIES if listener.port == 0 else 0):
        try:
            return _bind_all(listener, backlog, given_by)
        except StartupError:
            continue
    return _bind_all(listener, backlog, given_by)


def _bind_all(listener: Listener, backlog: int, given_by: GivenBy) -> list[socket.socket]:
    try:
        addresses = _addresses(listener.host)
    except OSError as error:
        raise StartupError(
            f"cannot resolve {listener.host!r}, the host of listener {listener.name}: "
            f"{error.strerror or error}; set {given_by.host} to an address of this machine"
        ) from error
    sockets: list[socket.socket] = []
    port = listener.port
    problem: OSError | None = None
    for family, host in addresses:
        try:
            sock = _bound_socket(family, host, port, backlog)
        except OSError as error:
            problem = error
            if error.errno == errno.EADDRINUSE:
                break
            continue  # this machine has no such address, ::1 in a container for example
        sockets.append(sock)
        port = sock.getsockname()[1]
    if problem is not None and (not sockets or problem.errno == errno.EADDRINUSE):
        for sock in sockets:
            sock.close()
        raise StartupError(_bind_message(listener, problem, given_by)) from problem
    return sockets


def _bind_message(listener: Listener, error: OSError, given_by: GivenBy) -> str:
    where = f"{listener.host or '*'}:{listener.port}"
    another = f"choose another {given_by.port}"
    if error.errno == errno.EADDRINUSE:
        return f"port {listener.port} is in use ({where}); stop the other program or {another}"
    if error.errno == errno.EACCES:
        return f"not allowed to listen on {where}; ports below 1024 need privileges, {another}"
    return f"cannot listen on {where}: {error.strerror or error}; check {given_by.host}"


def _addresses(host: str) -> list[tuple[socket.AddressFamily, str]]:
    if not host:
        return [(socket.AF_INET6, "::")] if socket.has_dualstack_ipv6() else [(socket.AF_INET, "0.0.0.0")]
    if host.lower() == "localhost":  # both, whatever the hosts file says; what is missing is left out
        return [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
    found: dict[tuple[socket.AddressFamily, str], None] = {}
    for family, _, _, _, address in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
        if family in (socket.AF_INET, socket.AF_INET6):
            found[family, str(address[0])] = None
    return sorted(found, key=lambda entry: entry[0] != socket.AF_INET)


def _bound_socket(family: socket.AddressFamily, host: str, port: int, backlog: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if host == "::" else 1)
        sock.bind((host, port))
        sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock
