"""Counting on the way of every request. Few operations, no object for a request: with metrics on, this is the
hottest code there is.

The clock is read twice in a turn of the event loop, not twice for each request: all requests of a turn were
readable when it began, and their answers leave when it ends, so that is the time which each of them took. One
that had to wait beyond its turn (a long poll, a commit) is told apart, with a time of its own.
"""

from collections.abc import Callable
from time import perf_counter_ns
from typing import Final

from mainstem.broker.connection import CLOSE, PARKED, Close, Connection, Parked, Reply
from mainstem.broker.output import Chunk, Turn
from mainstem.metrics import TimeHistogram
from mainstem.metrics.histogram import bucket
from mainstem.storage.file_range import FileRange

_KEYS: Final = 256
FrameHandler = Callable[[Connection, memoryview, int, int], Reply | Parked | Close]


class RequestMeter:
    """What is counted of one API."""

    __slots__ = (
        "at_once",
        "errors",
        "request_bytes",
        "response_bytes",
        "turn_count",
        "turn_request_bytes",
        "turn_response_bytes",
        "waited",
    )

    def __init__(self) -> None:
        self.at_once = TimeHistogram()
        self.waited = TimeHistogram()
        self.request_bytes = 0
        self.response_bytes = 0
        # What was answered in this turn. Numbers stay small: to add to one above 2**30 takes much longer.
        self.turn_count = 0
        self.turn_request_bytes = 0
        self.turn_response_bytes = 0
        self.errors: dict[int, int] = {}  # by error code

    def answered(self, began_ns: int, reply: Reply) -> None:
        """A request that had to wait has its answer."""
        self.waited.observe_ns(perf_counter_ns() - began_ns)
        self.response_bytes += len(reply) if type(reply) is bytes else _size(reply)  # type: ignore[arg-type]


class Meters:
    """All that a node counts while it works. What can be looked up instead is not counted."""

    __slots__ = ("_touched", "began_ns", "by_key", "closed_for_errors", "fsyncs", "loop_lag", "page_reads")

    def __init__(self) -> None:
        self.by_key = [RequestMeter() for _ in range(_KEYS)]
        self.closed_for_errors = 0
        self.fsyncs = TimeHistogram()
        self.page_reads = TimeHistogram()
        self.loop_lag = TimeHistogram()
        self.began_ns = 0  # this turn, or 0 when none of its frames was seen yet
        self._touched: list[RequestMeter] = []

    def around(self, handle: FrameHandler, turn: Turn) -> FrameHandler:
        """The same handler of frames, counted."""
        by_key = self.by_key
        touch = self._touched.append
        turn.on_end = self._end_turn

        def handle_frame(
            connection: Connection, frame: memoryview, start: int, end: int
        ) -> Reply | Parked | Close:
            if not self.began_ns:
                self.began_ns = perf_counter_ns()
                turn.begin()
            reply = handle(connection, frame, start, end)
            if type(reply) is bytes:
                meter = by_key[frame[start + 1]]
                if not meter.turn_count:
                    touch(meter)
                meter.turn_count += 1
                meter.turn_request_bytes += end - start
                meter.turn_response_bytes += len(reply)
            elif reply is PARKED:
                connection.meter = meter = by_key[frame[start + 1]]
                connection.parked_ns = self.began_ns
                meter.request_bytes += end - start
            elif reply is CLOSE:
                self.closed_for_errors += 1  # whatever it asked for, and be it an API that does not exist
            else:
                meter = by_key[frame[start + 1]]
                if not meter.turn_count:
                    touch(meter)
                meter.turn_count += 1
                meter.turn_request_bytes += end - start
                meter.turn_response_bytes += _size(reply)  # type: ignore[arg-type]
            return reply

        return handle_frame

    def _end_turn(self) -> None:
        if self.began_ns:
            taken_ns = perf_counter_ns() - self.began_ns
            self.began_ns = 0
            place = bucket(taken_ns)
            for meter in self._touched:
                histogram = meter.at_once
                histogram.counts[place] += meter.turn_count
                histogram.total_ns += taken_ns * meter.turn_count
                meter.request_bytes += meter.turn_request_bytes
                meter.response_bytes += meter.turn_response_bytes
                meter.turn_count = meter.turn_request_bytes = meter.turn_response_bytes = 0
            self._touched.clear()


def _size(chunks: list[Chunk]) -> int:
    return sum(chunk.length if isinstance(chunk, FileRange) else len(chunk) for chunk in chunks)
