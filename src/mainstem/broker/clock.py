"""The node's only clock: wall time for records and retention, and a time that is never set back or forward.

Nothing else in the broker reads the time, so that a test can hand in a clock of its own. Timers that only the
event loop knows are the loop's.
"""

import time


class Clock:
    """Reads the real time, in milliseconds."""

    __slots__ = ("_steady_offset_ms",)

    # For measuring how long something takes; its zero is nowhere.
    ticks_ns = staticmethod(time.perf_counter_ns)

    def __init__(self) -> None:
        self._steady_offset_ms = self.now_ms() - time.monotonic_ns() // 1_000_000

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        """Wall time as of the start, gone on at an even pace since: for sessions and other deadlines, which
        must neither end nor stand still because somebody sets the clock.
        """
        return time.monotonic_ns() // 1_000_000 + self._steady_offset_ms
