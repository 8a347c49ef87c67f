"""The node's only clock: wall time in milliseconds for records, monotonic seconds for timers.

Nothing else in the broker reads the time, so that a test can hand in a clock of its own.
"""

import time


class Clock:
    """Reads the real time."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()
