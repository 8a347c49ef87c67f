"""The node's only clock: wall time in milliseconds, for records and retention. Timers are the event loop's.

Nothing else in the broker reads the time, so that a test can hand in a clock of its own.
"""

import time


class Clock:
    """Reads the real time."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000
