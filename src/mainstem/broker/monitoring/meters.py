"""Counting on the way of every request: with metrics on, this is the hottest code there is.

To read the clock and to add up sizes costs several hundredths of a small request. So of those that come by
the ten thousand and are all alike, small produces to a known partition, every sixty-fourth is timed and
weighed, and stands for those before it, which are only counted. All others are measured one by one.
"""

from collections.abc import Callable
from typing import Final

from mainstem.broker.clock import Clock
from mainstem.broker.network.connection import CLOSE, PARKED, Close, Connection, FrameHandler, Parked, Reply
from mainstem.broker.network.output import Chunk
from mainstem.metrics import TimeHistogram
from mainstem.storage.files.file_range import FileRange

_KEYS: Final = 256
_PRODUCE: Final = 0
_SMALL_BYTES_MAX: Final = 4096  # frames below this come by the ten thousand, and are not timed one by one
_ALIKE_MAX: Final = 63

ShortWay = Callable[[Connection, memoryview, int, int], bytes | Parked | Close | None]


class RequestMeter:
    """What is counted of one API."""

    __slots__ = (
        "_allowed",
        "_last_ns",
        "_last_request_bytes",
        "_last_response_bytes",
        "_ticks_ns",
        "at_once",
        "errors",
        "may_pass",
        "request_bytes",
        "response_bytes",
        "waited",
    )

    def __init__(self, clock: Clock) -> None:
        self._ticks_ns = clock.ticks_ns
        self.at_once = TimeHistogram()
        self.waited = TimeHistogram()
        self.request_bytes = 0
        self.response_bytes = 0
        self.errors: dict[int, int] = {}  # by error code
        # How many requests like the last one need not be measured; who lets one pass takes one off.
        self.may_pass = 0
        self._allowed = 0
        self._last_ns = self._last_request_bytes = self._last_response_bytes = 0

    def measured(self, taken_ns: int, request_bytes: int, response_bytes: int) -> None:
        """A request was answered at once. It stands for those that passed before it."""
        self._last_ns = taken_ns
        self._last_request_bytes = request_bytes
        self._last_response_bytes = response_bytes
        self._add(self._allowed - self.may_pass + 1)

    def settle(self) -> None:
        """Have those that passed among the sums: they are taken for such as the last one."""
        self._add(self._allowed - self.may_pass)

    def let_pass(self, count: int) -> None:
        """So many of the next requests may be counted only."""
        self.settle()
        self._allowed = self.may_pass = count

    def _add(self, times: int) -> None:
        self._allowed = self.may_pass
        self.at_once.observe_ns(self._last_ns, times)
        self.request_bytes += self._last_request_bytes * times
        self.response_bytes += self._last_response_bytes * times

    def answered(self, began_ns: int, reply: Reply) -> None:
        """A request that had to wait has its answer."""
        self.waited.observe_ns(self._ticks_ns() - began_ns)
        self.response_bytes += _size(reply)


class Meters:
    """All that a node counts while it works. What can be looked up instead is not counted."""

    __slots__ = ("by_key", "closed_for_errors", "fsyncs", "loop_lag", "page_reads", "ticks_ns")

    def __init__(self, clock: Clock) -> None:
        self.ticks_ns = clock.ticks_ns
        self.by_key = [RequestMeter(clock) for _ in range(_KEYS)]
        self.closed_for_errors = 0
        self.fsyncs = TimeHistogram()
        self.page_reads = TimeHistogram()
        self.loop_lag = TimeHistogram()

    def around(self, try_short: ShortWay, handle: FrameHandler) -> FrameHandler:
        """A handler of frames that tries the short way and then the ordinary one, counted."""
        by_key, ticks_ns = self.by_key, self.ticks_ns

        def handle_frame(
            connection: Connection, frame: memoryview, start: int, end: int
        ) -> Reply | Parked | Close:
            meter = by_key[frame[start + 1]]
            if meter.may_pass and end - start < _SMALL_BYTES_MAX:
                answer = try_short(connection, frame, start, end)
                if type(answer) is bytes:
                    meter.may_pass -= 1
                    return answer
                began_ns = ticks_ns()
            else:
                began_ns = ticks_ns()
                answer = try_short(connection, frame, start, end)
            reply = answer if answer is not None else handle(connection, frame, start, end)
            if reply is CLOSE:
                self.closed_for_errors += 1  # whatever it asked for, and be it an API that does not exist
            elif reply is PARKED:
                connection.meter = meter
                meter.request_bytes += end - start
                connection.parked_ns = began_ns
            else:
                self._measured(frame[start + 1], ticks_ns() - began_ns, end - start, reply)  # type: ignore[arg-type]
            return reply

        return handle_frame

    def _measured(self, key: int, taken_ns: int, size: int, reply: Reply) -> None:
        meter = self.by_key[key]
        if size >= _SMALL_BYTES_MAX:
            meter.settle()  # it is not like those before it
        meter.measured(taken_ns, size, _size(reply))
        if key == _PRODUCE:
            # What is large goes on being measured, and what came before it tells nothing of the small ones.
            meter.let_pass(_ALIKE_MAX if size < _SMALL_BYTES_MAX else 0)


def _size(reply: Reply) -> int:
    if type(reply) is bytes:
        return len(reply)
    chunks: list[Chunk] = reply  # type: ignore[assignment]
    return sum(chunk.length if isinstance(chunk, FileRange) else len(chunk) for chunk in chunks)
