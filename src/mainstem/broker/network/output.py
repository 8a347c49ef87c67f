"""A connection's output: a queue of bytes and file ranges, written without copying and without blocking.

Bytes go out with `send`, file ranges with `send_file` straight from the page cache. A range whose pages
are not cached would block the event loop for a disk read, so it is first read ahead in a thread. At most
`PASS_BYTES_MAX` leave per pass of the loop, so that one fast reader cannot starve the others.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable

from mainstem.broker.network.transport import Transport
from mainstem.metrics import TimeHistogram
from mainstem.storage.files.file_range import FileRange

Chunk = bytes | bytearray | memoryview | FileRange

PASS_BYTES_MAX = 1024 * 1024
_PIECE_BYTES = 256 * 1024
_READ_AHEAD_BYTES = 1024 * 1024


class EndOfPass:
    """The outputs that have something to send when the current pass of the event loop ends."""

    __slots__ = ("_loop", "_outputs", "page_reads", "ticks_ns")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        ticks_ns: Callable[[], int],
        page_reads: TimeHistogram | None = None,
    ) -> None:
        self._loop = loop
        self.ticks_ns = ticks_ns
        self.page_reads = page_reads  # where somebody wants to know what they take
        self._outputs: list[OutputQueue] = []

    def add(self, output: "OutputQueue") -> None:
        if not self._outputs:
            self._loop.call_soon(self._end)
        self._outputs.append(output)

    def _end(self) -> None:
        outputs, self._outputs = self._outputs, []
        for output in outputs:
            output.end_pass()


class OutputQueue:
    """Owns the writing side of one transport. `on_drained` is called when a blocked queue
    emptied.
    """

    __slots__ = (
        "_cached_until",
        "_delayed",
        "_end_of_pass",
        "_loop",
        "_on_drained",
        "_on_error",
        "_send",
        "_transport",
        "_warming",
        "_warming_since_ns",
        "_writer_registered",
        "chunks",
        "last_progress",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        end_of_pass: EndOfPass,
        transport: Transport,
        on_drained: Callable[[], None],
        on_error: Callable[[OSError], None],
    ) -> None:
        self._loop = loop
        self._end_of_pass = end_of_pass
        self._delayed = b""
        self._transport = transport
        self._send = transport.send
        # What is still unsent; the connection takes no further request while there is anything.
        self.chunks: deque[Chunk] = deque()
        self._on_drained = on_drained
        self._on_error = on_error
        self._writer_registered = False
        self._warming = False
        self._warming_since_ns = 0
        self._cached_until = 0  # up to where the first chunk, a file range, is known to be in memory
        self.last_progress = 0.0  # when the client last took something of what had to wait

    def send_at_end_of_pass(self, data: bytes) -> None:
        """Send when every socket that is readable in this pass of the loop has been served.

        Answers that leave one after the other wake a client once for many of them, instead of once for each.
        """
        if not self._delayed:
            self._end_of_pass.add(self)
        self._delayed += data

    def end_pass(self) -> None:
        """Send what was delayed, unless something else has taken it along meanwhile."""
        if self._delayed:
            self.send(b"")

    def send(self, data: bytes) -> None:
        """Send one complete response that is plain bytes: the path of nearly every small request."""
        if self._delayed:
            data = self._delayed + data
            self._delayed = b""
        if not self.chunks:
            try:
                sent = self._send(data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError as error:
                self._on_error(error)
                return
            if sent == len(data):
                return
            data = data[sent:]
        self.chunks.append(data)
        if not self._warming:
            self._watch()

    def send_chunks(self, chunks: list[Chunk]) -> None:
        """Send one response made of several chunks, file ranges among them."""
        if self._delayed:
            self.chunks.append(self._delayed)
            self._delayed = b""
        self.chunks.extend(chunks)
        if not self._writer_registered and not self._warming:
            self._drain()

    def close(self) -> None:
        """Stop writing and let go of the file ranges. The transport itself belongs to the connection."""
        self._unwatch()
        self.chunks.clear()
        self._delayed = b""

    def _watch(self) -> None:
        if not self._writer_registered:
            self._transport.when_writable(self._on_writable)
            self._writer_registered = True

    def _unwatch(self) -> None:
        if self._writer_registered:
            self._transport.when_writable(None)
            self._writer_registered = False

    def _on_writable(self) -> None:
        self.last_progress = self._loop.time()
        self._drain()
        if not self.chunks and self._writer_registered:
            self._unwatch()
            self._on_drained()

    def _drain(self) -> None:
        budget = PASS_BYTES_MAX
        try:
            while self.chunks and budget > 0:
                sent = self._send_first()
                if sent < 0:
                    return  # a thread reads the pages ahead and comes back
                budget -= sent
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._on_error(error)
            return
        if self.chunks:
            self._watch()

    def _send_first(self) -> int:
        chunk = self.chunks[0]
        if isinstance(chunk, FileRange):
            return self._send_range(chunk)
        sent = self._transport.send_with_more(chunk) if len(self.chunks) > 1 else self._send(chunk)
        if sent == len(chunk):
            self.chunks.popleft()
        else:
            self.chunks[0] = memoryview(chunk)[sent:]
        return sent

    def _send_range(self, chunk: FileRange) -> int:
        position = chunk.position
        fd = chunk.fileno()
        if position >= self._cached_until:
            count = min(chunk.length, PASS_BYTES_MAX)
            if not _is_cached(fd, position, count):
                self._warm(chunk, count)
                return -1
            self._cached_until = position + count
        # In pieces, so that the client copies one while the next is on its way.
        sent = self._transport.send_file(fd, position, min(self._cached_until - position, _PIECE_BYTES))
        if sent == 0:
            raise OSError("log segment is shorter than the range to send")
        if sent == chunk.length:
            self.chunks.popleft()
            self._cached_until = 0
        else:
            chunk.advance(sent)
        return sent

    def _warm(self, chunk: FileRange, count: int) -> None:
        self._unwatch()
        self._warming = True
        self._warming_since_ns = self._end_of_pass.ticks_ns()
        future = self._loop.run_in_executor(None, _read_ahead, chunk, count)
        future.add_done_callback(self._on_warmed)

    def _on_warmed(self, future: asyncio.Future[None]) -> None:
        self._warming = False
        self._cached_until = 0
        if self._end_of_pass.page_reads is not None:
            self._end_of_pass.page_reads.observe_ns(self._end_of_pass.ticks_ns() - self._warming_since_ns)
        if not self.chunks:
            return  # closed meanwhile
        error = future.exception()
        if isinstance(error, OSError):
            self._on_error(error)
            return
        chunk = self.chunks[0]
        assert isinstance(chunk, FileRange)
        try:
            sent = self._transport.send_file(
                chunk.fileno(), chunk.position, min(chunk.length, PASS_BYTES_MAX)
            )
            if sent == chunk.length:
                self.chunks.popleft()
            else:
                chunk.advance(sent)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as problem:
            self._on_error(problem)
            return
        self._drain()
        if not self.chunks:
            self._on_drained()


def _is_cached(fd: int, position: int, count: int) -> bool:
    """Whether the first and last byte of the range can be read without waiting for the disk."""
    probe = bytearray(1)
    try:
        os.preadv(fd, [probe], position, os.RWF_NOWAIT)
        os.preadv(fd, [probe], position + count - 1, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    except (OSError, AttributeError):
        return True  # a file system or platform without RWF_NOWAIT: nothing better is known
    return True


def _read_ahead(chunk: FileRange, count: int) -> None:
    scratch = bytearray(min(count, _READ_AHEAD_BYTES))
    os.preadv(chunk.fileno(), [scratch], chunk.position)
