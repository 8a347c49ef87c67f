"""Holds cleaning back to `log.cleaner.io.max.bytes.per.second`, reading and writing taken together."""

import time
from collections.abc import Callable

# Shorter rests than this are saved up.
_REST_SECONDS_MIN = 0.01


class Throttle:
    """Counts bytes and rests when there were too many for the time that has passed."""

    def __init__(
        self,
        bytes_per_second: float,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bytes_per_second = max(bytes_per_second, 1.0)
        self._now = now
        self._sleep = sleep
        # The time at which all bytes so far are allowed to have been moved.
        self._even_at = now()

    def moved(self, count: int) -> None:
        now = self._now()
        self._even_at = max(self._even_at, now - 1.0) + count / self._bytes_per_second
        ahead = self._even_at - now
        if ahead > _REST_SECONDS_MIN:
            self._sleep(ahead)
