"""Counting on the way of every request. Few operations, no object for a request: with metrics on, this is the
hottest code there is.

A request is counted when it is answered, with the time from its last byte to its answer. One that had to wait
(a long poll, a commit) is told apart from one that was answered at once, whose time is the broker's own work.
"""

from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from mainstem.broker.connection import CLOSE, PARKED, Close, Connection, Parked, Reply
from mainstem.metrics import TimeHistogram
from mainstem.metrics.histogram import SHIFT
from mainstem.storage.file_range import FileRange

if TYPE_CHECKING:
    from mainstem.broker.output import Chunk

_KEYS: Final = 256
FrameHandler = Callable[[Connection, memoryview, int, int], Reply | Parked | Close]


class RequestMeter:
    """What is counted of one API."""

    __slots__ = ("at_once", "errors", "request_bytes", "response_bytes", "waited")

    def __init__(self) -> None:
        self.at_once = TimeHistogram()
        self.waited = TimeHistogram()
        self.request_bytes = 0
        self.response_bytes = 0
        self.errors: dict[int, int] = {}  # by error code

    def answered(self, began_ns: int, reply: Reply) -> None:
        """A request that had to wait has its answer."""
        self.waited.observe_ns(perf_counter_ns() - began_ns)
        self.response_bytes += len(reply) if type(reply) is bytes else _size(reply)  # type: ignore[arg-type]


class Meters:
    """All that a node counts while it works. What can be looked up instead is not counted."""

    __slots__ = ("by_key", "closed_for_errors", "fsyncs", "loop_lag", "page_reads")

    def __init__(self) -> None:
        self.by_key = [RequestMeter() for _ in range(_KEYS)]
        self.closed_for_errors = 0
        self.fsyncs = TimeHistogram()
        self.page_reads = TimeHistogram()
        self.loop_lag = TimeHistogram()

    def around(self, handle: FrameHandler) -> FrameHandler:
        """The same handler of frames, counted."""
        by_key = self.by_key
        clock = perf_counter_ns

        def handle_frame(
            connection: Connection, frame: memoryview, start: int, end: int
        ) -> Reply | Parked | Close:
            began_ns = clock()
            reply = handle(connection, frame, start, end)
            if type(reply) is bytes:
                meter = by_key[frame[start + 1]]
                meter.request_bytes += end - start
                meter.response_bytes += len(reply)
                histogram = meter.at_once
                taken_ns = clock() - began_ns
                histogram.total_ns += taken_ns
                histogram.counts[(taken_ns >> SHIFT).bit_length()] += 1
            elif reply is PARKED:
                connection.meter = meter = by_key[frame[start + 1]]
                connection.parked_ns = began_ns
                meter.request_bytes += end - start
            elif reply is CLOSE:
                self.closed_for_errors += 1  # whatever it asked for, and be it an API that does not exist
            else:
                meter = by_key[frame[start + 1]]
                meter.request_bytes += end - start
                meter.response_bytes += _size(reply)  # type: ignore[arg-type]
                meter.at_once.observe_ns(clock() - began_ns)
            return reply

        return handle_frame


def _size(chunks: "list[Chunk]") -> int:
    return sum(chunk.length if isinstance(chunk, FileRange) else len(chunk) for chunk in chunks)
