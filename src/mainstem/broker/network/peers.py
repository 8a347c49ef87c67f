"""Requests from this node to another broker: one connection, which never blocks the event loop.

It is made when the first request wants it, and again after it was lost, with pauses in between that grow
(`reconnect.backoff.ms`, `reconnect.backoff.max.ms`). What is asked during a pause waits for its end, as long
as its own time lasts; nothing is ever sent twice. A connection that cannot be made, or that ends, fails at
once whatever waits for it: a refused one tells that the other process is gone, long before any session of it
has run out. What goes over the wire is the matter of `mainstem.wire.core`.
"""

import asyncio
import math
import os
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from mainstem.wire.backoff import Backoff
from mainstem.wire.connection import address_text, reason
from mainstem.wire.core import Answer, Close, ConnectionCore, Effect, Ready, Send
from mainstem.wire.errors import Address, ConnectionLost, ConnectionRefused, NotServed, WireError
from mainstem.wire.mechanisms import mechanism_of
from mainstem.wire.options import ClientOptions, OAuthBearerOptions

# In one turn of the loop, so that a peer with much to say holds up nobody else.
_READS_PER_TURN_MAX = 16

# Called once, with the response or with the `WireError` that it has none for.
OnAnswer = Callable[[Any], None]


@dataclass(frozen=True)
class PeerOptions:
    """How to speak to a peer, and how patiently to dial it."""

    client: ClientOptions = field(default_factory=ClientOptions)
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000


@dataclass(slots=True)
class _Asked:
    request: Any
    on_answer: OnAnswer
    asked_at: float
    timeout_s: float
    version_min: int
    version_max: int | None

    @property
    def deadline(self) -> float:
        return self.asked_at + self.timeout_s


class _State(Enum):
    IDLE = auto()  # nobody has wanted a connection since the last one
    DIALING = auto()
    OPEN = auto()  # requests are sent as soon as the core is ready
    PAUSED = auto()
    CLOSED = auto()


class PeerConnection:
    """To one address. Everything is called, and calls back, in the loop's thread; a call has returned before
    what it leads to is called back.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: Address,
        options: PeerOptions,
        random: Callable[[], float],
    ) -> None:
        assert not options.client.uses_tls, "peers are spoken to in plain text"
        assert not isinstance(options.client.sasl, OAuthBearerOptions), "asking for a token would block"
        self.address = address_text(*address)
        self._loop = loop
        self._host, self._port = address
        self._options = options.client
        self._backoff = Backoff(options.reconnect_backoff_ms, options.reconnect_backoff_max_ms, random)
        self._state = _State.IDLE
        self._core: ConnectionCore | None = None
        self._sock: socket.socket | None = None
        self._unsent: deque[memoryview] = deque()
        # Asked while there was no connection, in their order; and sent, whose answers come in that order.
        self._waiting: deque[_Asked] = deque()
        self._under_way: deque[_Asked] = deque()
        self._dialing: asyncio.Task[None] | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None

    # ---- what the node asks

    def request(
        self,
        request: Any,
        on_answer: OnAnswer,
        *,
        timeout_s: float,
        version_min: int = 0,
        version_max: int | None = None,
    ) -> None:
        """Send a request in the newest version that both sides know, from `version_min` to `version_max`."""
        now = self._loop.time()
        asked = _Asked(request, on_answer, now, timeout_s, version_min, version_max)
        if self._state is _State.CLOSED:
            self._loop.call_soon(on_answer, self._closed())
            return
        core = self._core
        if core is not None and core.is_ready and now < core.expires_at:
            self._send(asked)
        else:
            self._waiting.append(asked)
            if self._state is _State.IDLE:
                self._dial()
            elif core is not None and core.is_ready:
                self._authenticate_anew()
        self._wake_at(asked.deadline)

    async def call(self, request: Any, *, timeout_s: float, version_max: int | None = None) -> Any:
        """The response, for a coroutine that has nothing else to do; raises why there is none."""
        answered: asyncio.Future[Any] = self._loop.create_future()

        def settle(outcome: Any) -> None:
            if answered.done():
                return  # whoever waited was cancelled
            if isinstance(outcome, WireError):
                answered.set_exception(outcome)
            else:
                answered.set_result(outcome)

        self.request(request, settle, timeout_s=timeout_s, version_max=version_max)
        return await answered

    def close(self) -> None:
        """Fail whatever has no answer, for good."""
        if self._state is _State.CLOSED:
            return
        self._hang_up()
        for handle in (self._pause, self._timer):
            if handle is not None:
                handle.cancel()
        self._state = _State.CLOSED
        self._fail_all(self._closed())

    # ---- dialing

    def _dial(self) -> None:
        self._state = _State.DIALING
        self._dialing = self._loop.create_task(self._open())

    async def _open(self) -> None:
        try:
            mechanism = mechanism_of(self._options.sasl) if self._options.sasl is not None else None
            sock = await self._connected_socket()
        except ConnectionRefusedError as error:
            self._lost(ConnectionRefused(self.address, reason(error)))
            return
        except (OSError, OverflowError, UnicodeError) as error:
            self._lost(ConnectionLost(self.address, reason(error)))
            return
        self._dialing = None
        self._state = _State.OPEN
        self._sock = sock
        self._core = ConnectionCore(self.address, self._options, mechanism)
        self._loop.add_reader(sock, self._on_readable)
        self._carry_out(self._core.connected(self._loop.time()))
        self._wake_at(self._core.deadline)

    async def _connected_socket(self) -> socket.socket:
        """To the first of the host's addresses that takes the connection."""
        problem: OSError = OSError("the host has no address")
        try:
            async with asyncio.timeout(self._options.connect_timeout_ms / 1000):
                for family, kind, protocol, _, address in await self._loop.getaddrinfo(
                    self._host, self._port, type=socket.SOCK_STREAM
                ):
                    sock = socket.socket(family, kind, protocol)
                    try:
                        sock.setblocking(False)
                        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        await self._loop.sock_connect(sock, address)
                    except OSError as error:
                        # The event loop's own text leaves out why.
                        problem = OSError(error.errno, os.strerror(error.errno)) if error.errno else error
                        sock.close()
                    except BaseException:
                        sock.close()
                        raise
                    else:
                        return sock
        except TimeoutError:
            timeout_s = self._options.connect_timeout_ms / 1000
            raise OSError(f"it did not take the connection in {timeout_s:g} s") from None
        raise problem

    # ---- sending

    def _send(self, asked: _Asked) -> None:
        assert self._core is not None
        try:
            effect = self._core.request(
                asked.request,
                asked.asked_at,
                asked.timeout_s,
                version_min=asked.version_min,
                version_max=asked.version_max,
            )
        except NotServed as error:
            self._loop.call_soon(asked.on_answer, error)
            return
        self._under_way.append(asked)
        self._write(effect.data)

    def _send_waiting(self) -> None:
        while self._waiting and self._state is _State.OPEN:
            self._send(self._waiting.popleft())

    def _authenticate_anew(self) -> None:
        """By a new connection, when the answers that the old one owes have come."""
        if not self._under_way:
            self._hang_up()
            self._dial()

    def _write(self, data: bytes) -> None:
        assert self._sock is not None
        view = memoryview(data)
        if not self._unsent:
            try:
                view = view[self._sock.send(view) :]
            except BlockingIOError:
                pass
            except OSError:
                return  # the reader is told as well, and knows what was answered before
            if view:
                self._loop.add_writer(self._sock, self._on_writable)
        if view:
            self._unsent.append(view)

    def _on_writable(self) -> None:
        assert self._sock is not None
        try:
            while self._unsent:
                view = self._unsent[0]
                sent = self._sock.send(view)
                if sent < len(view):
                    self._unsent[0] = view[sent:]
                    return
                self._unsent.popleft()
        except BlockingIOError:
            return
        except OSError:
            pass  # as above
        self._loop.remove_writer(self._sock)

    # ---- what comes back

    def _on_readable(self) -> None:
        sock, core = self._sock, self._core
        assert sock is not None
        assert core is not None
        for _ in range(_READS_PER_TURN_MAX):
            try:
                count = sock.recv_into(core.frames.room())
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._carry_out(core.lost(reason(error)))
                return
            effects = core.received(count, self._loop.time())
            self._carry_out(effects)
            # What was called back may have closed this connection; and an idle peer says nothing.
            if self._sock is not sock or (effects and not core.requests_under_way):
                return

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(data):
                    self._write(data)
                case Ready():
                    self._backoff.reset()
                    self._send_waiting()
                case Answer(message):
                    self._under_way.popleft().on_answer(message)
                    if self._waiting and self._state is _State.OPEN:
                        self._authenticate_anew()
                case Close(error):
                    self._lost(error)

    # ---- time, and the end

    def _wake_at(self, deadline: float) -> None:
        """Look at the deadlines then at the latest. A timer that is set too early only looks once more."""
        if deadline == math.inf or (self._timer is not None and self._timer.when() <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        now = self._loop.time()
        late = [asked for asked in self._waiting if asked.deadline <= now]
        self._waiting = deque(asked for asked in self._waiting if asked.deadline > now)
        if self._core is not None:
            self._carry_out(self._core.time_passed(now))
        for asked in late:
            problem = f"no connection in the {asked.timeout_s:g} s that the request had"
            self._loop.call_soon(asked.on_answer, ConnectionLost(self.address, problem))
        deadlines = [asked.deadline for asked in self._waiting]
        if self._core is not None:
            deadlines.append(self._core.deadline)
        self._wake_at(min(deadlines, default=math.inf))

    def _lost(self, error: WireError) -> None:
        """Fail what waited for this connection, and dial no more for a while."""
        self._hang_up()
        self._state = _State.PAUSED
        self._pause = self._loop.call_later(self._backoff.next_s(), self._end_pause)
        self._fail_all(error)

    def _end_pause(self) -> None:
        self._pause = None
        self._state = _State.IDLE
        if self._waiting:
            self._dial()

    def _hang_up(self) -> None:
        if self._dialing is not None and self._dialing is not asyncio.current_task(self._loop):
            self._dialing.cancel()
        self._dialing = None
        self._core = None
        self._unsent.clear()
        if self._sock is not None:
            self._loop.remove_reader(self._sock)
            self._loop.remove_writer(self._sock)
            self._sock.close()
            self._sock = None

    def _fail_all(self, error: WireError) -> None:
        failed = [*self._under_way, *self._waiting]
        self._under_way.clear()
        self._waiting.clear()
        for asked in failed:
            self._loop.call_soon(asked.on_answer, error)

    def _closed(self) -> ConnectionLost:
        return ConnectionLost(self.address, "this node has closed the connection")
