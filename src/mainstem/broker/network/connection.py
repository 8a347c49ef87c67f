"""One client connection: frames in, responses out, one request at a time and in order.

It owns its transport. Input arrives in a receive buffer that all connections share; only a
frame that is not complete yet, or that waits behind a parked request, gets a buffer of the connection's
own, and gives it back when it is done. It never interprets a request: a complete frame goes to the
dispatcher.
"""

import asyncio
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Final, Protocol

from mainstem.broker.network.buffers import Buffer, BufferPool, RequestMemory
from mainstem.broker.network.output import Chunk, EndOfPass, OutputQueue
from mainstem.broker.network.transport import Transport
from mainstem.broker.turns import Turn, Turns
from mainstem.config.listeners import Listener

if TYPE_CHECKING:
    from mainstem.broker.monitoring.meters import RequestMeter
    from mainstem.broker.requests.fast_path import RouteTable

_size_at = Struct(">i").unpack_from
_FRAME_BYTES_MIN: Final = 8  # api key, api version, correlation id
_LARGE_FRAME_BYTES: Final = 64 * 1024
_READ_AHEAD_WHILE_PARKED_BYTES: Final = 64 * 1024
_FIRST_BUFFER_BYTES: Final = 128 * 1024  # of a frame whose bytes have not come yet
_FRAME_HINT_BYTES_MAX: Final = 4 * 1024 * 1024
_PENDING_CHUNKS_MAX: Final = 64
_PENDING_BYTES_MAX: Final = 256 * 1024
_FRAMES_PER_LOOK: Final = 16  # at the clock, which costs a hundredth of a small request

Reply = bytes | list[Chunk]


class Parked:
    """The request waits; its answer comes later through `Connection.reply`."""


PARKED: Final = Parked()


class Close:
    """The request cost its sender the connection; what was answered before it still goes out."""


CLOSE: Final = Close()


FrameHandler = Callable[["Connection", memoryview, int, int], Reply | Parked | Close]


class Waiter(Protocol):
    """A parked request, as its connection sees it."""

    def cancel(self) -> None:
        """The client is gone: leave every list that would wake this request."""


class ConnectionHost(Protocol):
    """What a connection needs from the node it belongs to."""

    loop: asyncio.AbstractEventLoop
    receive_view: memoryview
    buffer_pool: BufferPool
    request_memory: RequestMemory
    end_of_pass: EndOfPass
    turns: Turns
    frame_bytes_max: int

    def handle_frame(
        self, connection: "Connection", frame: memoryview, start: int, end: int
    ) -> Reply | Parked | Close:
        """Answer one request, or park it. An empty reply means that the request has no response."""

    def connection_closed(self, connection: "Connection") -> None: ...


class Connection:
    """The state of one client's connection."""

    __slots__ = (
        "_buffer",
        "_ended",
        "_filled",
        "_frame_hint",
        "_handle_frame",
        "_host",
        "_loop",
        "_muted",
        "_reader_registered",
        "_recv_into",
        "_reserved_bytes",
        "_transport",
        "_view",
        "_waits_for_turn",
        "client_host",
        "closed",
        "last_active",
        "listener",
        "meter",
        "output",
        "parked",
        "parked_ns",
        "routes",
        "waiter",
        "working",
    )

    def __init__(
        self, host: ConnectionHost, transport: Transport, listener: Listener, client_host: str
    ) -> None:
        self._host = host
        self._loop = host.loop
        self._transport = transport
        self._recv_into = transport.recv_into
        self._handle_frame = host.handle_frame
        self.listener = listener
        self.client_host = client_host
        self.closed = False
        self.parked = False
        # The parked request is being worked on: it is finished even if the client has sent its last.
        self.working = False
        self.waiter: Waiter | None = None
        # The short ways for what came through it before, by the key and version of the API.
        self.routes: dict[int, RouteTable] | None = None
        self.meter: RequestMeter | None = None  # of the parked request, when metrics are wanted
        self.parked_ns = 0
        self.last_active = host.loop.time()
        self._buffer: Buffer | None = None
        self._view: memoryview = host.receive_view
        self._filled = 0
        self._ended = False
        self._frame_hint = 0
        self._muted = False
        self._waits_for_turn = False
        self._reserved_bytes = 0
        self.output = OutputQueue(
            host.loop, host.end_of_pass, transport, self._on_drained, self._on_output_error
        )
        self._reader_registered = True
        transport.when_readable(self._on_readable)

    # ---- input

    def _on_readable(self) -> None:
        self.last_active = self._loop.time()
        view = self._view
        if self._buffer is not None:
            if self._filled == len(self._buffer):
                self._pause_reading()  # read ahead far enough behind a parked request
                return
            view = view[self._filled : self._wanted_end()]
        elif self._frame_hint:
            hint = self._frame_hint
            self._frame_hint = 0  # set again below when another large frame comes
            self._own_buffer(hint, b"")
            view = self._view[:hint]
        try:
            count = self._recv_into(view)
        except (BlockingIOError, InterruptedError):
            self._keep(0)
            return
        except OSError:
            self.close()
            return
        if count == 0:
            self._on_end()
            return
        self._filled += count
        if self.parked or self._muted or self._waits_for_turn or self.output.chunks:
            self._keep(0)
        elif self._buffer is None and 12 <= count <= _LARGE_FRAME_BYTES and _size_at(view)[0] == count - 4:
            self._answer_only_frame(count)
        elif self._parse(None):
            self._wait_for_turn()

    def _wanted_end(self) -> int:
        """Up to where the own buffer is filled: to the end of a large frame, so that nothing behind it has
        to be moved; else as far as it goes.
        """
        assert self._buffer is not None
        if self._filled >= 4:
            end: int = 4 + _size_at(self._view)[0]
            if self._filled < end < len(self._buffer):
                return end
        return len(self._buffer)

    def _answer_only_frame(self, count: int) -> None:
        """The short way for what nearly every turn is: one small request, whole, with nothing behind it."""
        self._filled = 0
        if count - 4 > self._host.frame_bytes_max:
            self.close()
            return
        reply = self._handle_frame(self, self._view, 4, count)
        if type(reply) is bytes:
            if reply:
                self.output.send_at_end_of_pass(reply)
        elif reply is PARKED:
            self.parked = True
        elif reply is CLOSE:
            self.close()
        else:
            self.output.send_chunks(reply)  # type: ignore[arg-type]

    def _on_end(self) -> None:
        """The client sends no more. What is queued still goes out; of a parked request nobody knows whether
        anybody still waits for it.
        """
        if self._nothing_to_finish():
            self.close()
            return
        self._ended = True
        self._pause_reading()

    def _nothing_to_finish(self) -> bool:
        return not self.working and (self.parked or not (self._waits_for_turn or self.output.chunks))

    def _parse(self, turn: Turn | None) -> bool:
        """Answer complete frames, as many as a turn has time for. What remains is kept in a buffer of the
        connection's own; whether it may hold more of them.
        """
        pos = frames = 0
        is_over = False
        view = self._view
        filled = self._filled
        pending: list[Chunk] = []
        pending_bytes = 0
        handle = self._handle_frame
        frame_bytes_max = self._host.frame_bytes_max
        while filled - pos >= 4:
            size = _size_at(view, pos)[0]
            end = pos + 4 + size
            if not _FRAME_BYTES_MIN <= size <= frame_bytes_max:
                reply: Reply | Parked | Close = CLOSE
            elif end > filled:
                break
            else:
                reply = handle(self, view, pos + 4, end)
            pos = end
            if reply is CLOSE:
                self._send(pending)
                self.close()
                return False
            if size > _LARGE_FRAME_BYTES:
                self._frame_hint = min(size + 4, _FRAME_HINT_BYTES_MAX)
            if reply is PARKED:
                self.parked = True
                break
            if type(reply) is bytes:
                if reply:
                    pending.append(reply)
                    pending_bytes += len(reply)
            else:
                pending.extend(reply)  # type: ignore[arg-type]
            if len(pending) >= _PENDING_CHUNKS_MAX or pending_bytes >= _PENDING_BYTES_MAX:
                self._send(pending)
                pending = []
                pending_bytes = 0
                if self.closed:
                    return False
                if self.output.chunks:
                    break
            if self._muted:
                break
            frames += 1
            if frames % _FRAMES_PER_LOOK == 0:
                if turn is None:
                    turn = self._host.turns.begin()
                is_over = turn.is_over
                if is_over:
                    break
        if pending:
            self._send(pending)
            if self.closed:
                return False
        self._keep(pos)
        return is_over

    def _send(self, pending: list[Chunk]) -> None:
        if self.closed or not pending:
            return
        if len(pending) == 1 and type(pending[0]) is bytes:
            if pending[0]:
                self.output.send(pending[0])
            return
        if all(type(chunk) is bytes for chunk in pending):
            data = b"".join(pending)  # type: ignore[arg-type]
            if data:
                self.output.send(data)
            return
        self.output.send_chunks(pending)

    def _keep(self, pos: int) -> None:
        """Move the unparsed rest to where the next bytes are received, or let the buffer go when there is
        none.
        """
        rest = self._filled - pos
        if rest == 0:
            self._release_buffer()
            return
        view = self._view
        need = _READ_AHEAD_WHILE_PARKED_BYTES
        if rest >= 4:
            need = max(need, 4 + _size_at(view, pos)[0])
            if (
                not _FRAME_BYTES_MIN
                <= need - 4
                <= self._host.frame_bytes_max + _READ_AHEAD_WHILE_PARKED_BYTES
            ):
                self.close()
                return
        if self._buffer is None or rest == len(self._buffer) < need:
            self._own_buffer(need, view[pos : self._filled])
        elif pos:
            self._view[:rest] = self._view[pos : self._filled]
            self._filled = rest

    def _own_buffer(self, size: int, rest: memoryview | bytes) -> None:
        memory = self._host.request_memory
        wanted = size - self._reserved_bytes
        if size > _LARGE_FRAME_BYTES and wanted > 0:
            if memory.try_reserve(wanted):
                self._reserved_bytes += wanted
            elif rest:
                size = max(len(rest), _LARGE_FRAME_BYTES)
                self._pause_reading()
                memory.wait(self._retry_reading)
            else:
                size = _LARGE_FRAME_BYTES
        if rest:
            size = max(len(rest), min(size, max(_FIRST_BUFFER_BYTES, 4 * len(rest))))
        old = self._buffer
        buffer = self._host.buffer_pool.take(size)
        view = memoryview(buffer)
        view[: len(rest)] = rest
        self._filled = len(rest)
        self._buffer = buffer
        self._view = view
        if old is not None:
            self._host.buffer_pool.give(old)

    def _release_buffer(self) -> None:
        self._filled = 0
        if self._buffer is not None:
            buffer = self._buffer
            self._buffer = None
            self._view = self._host.receive_view
            self._host.buffer_pool.give(buffer)
        if self._reserved_bytes:
            reserved = self._reserved_bytes
            self._reserved_bytes = 0
            self._host.request_memory.release(reserved)

    def _pause_reading(self) -> None:
        if self._reader_registered:
            self._transport.when_readable(None)
            self._reader_registered = False

    def _resume_reading(self) -> None:
        if not self._reader_registered and not self.closed:
            self._transport.when_readable(self._on_readable)
            self._reader_registered = True

    def _retry_reading(self) -> None:
        if not self.closed:
            self._loop.call_soon(self._continue)

    # ---- output

    def reply(self, reply: Reply) -> None:
        """Answer the parked request, then go on with what arrived behind it."""
        if self.closed:
            return
        assert self.parked
        self.parked = False
        self.waiter = None
        if self.meter is not None:
            self.meter.answered(self.parked_ns, reply)
            self.meter = None
        self.last_active = self._loop.time()
        self._send([reply] if type(reply) is bytes else reply)  # type: ignore[arg-type]
        if self._filled or not self._reader_registered:
            self._loop.call_soon(self._continue)

    def mute(self, duration_ms: int) -> None:
        """Take no further request for a while: how a client above its quota is slowed down."""
        self._muted = True
        self._loop.call_later(duration_ms / 1000, self._unmute)

    def _unmute(self) -> None:
        self._muted = False
        self._continue()

    def _continue(self) -> None:
        if not self._waits_for_turn and self.go_on(None):
            self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        self._waits_for_turn = True
        self._host.turns.later(self)

    def go_on(self, turn: Turn | None) -> bool:
        """Take what waits for this connection to be free; whether something is left for the next turn."""
        self._waits_for_turn = False
        if self.closed or self.parked or self._muted or self.output.chunks:
            return False
        if self._filled and self._parse(turn):
            self._waits_for_turn = True
            return True
        if self.closed:
            return False
        if not self._ended:
            self._resume_reading()
        elif self._nothing_to_finish():
            self.close()
        return False

    def _on_drained(self) -> None:
        self._continue()

    def _on_output_error(self, error: OSError) -> None:
        self.close()

    def close(self) -> None:
        """Close the transport, drop what is unsent, and tell whoever waits on behalf of this connection."""
        if self.closed:
            return
        self.closed = True
        self._pause_reading()
        self.output.close()
        self._release_buffer()
        self._host.request_memory.forget(self._retry_reading)
        if self.waiter is not None:
            self.waiter.cancel()
            self.waiter = None
        self._host.connection_closed(self)
        self._transport.close()
