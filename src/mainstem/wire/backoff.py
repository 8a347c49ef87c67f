"""How long to pause before the next attempt: Kafka's backoff, doubled each time, with jitter.

Randomness is handed in, the clock is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable

_JITTER = 0.2
_DOUBLINGS_MAX = 16


class Backoff:
    """Pauses that double up to a limit, each off by a fifth at most so that clients do not march in step."""

    def __init__(self, first_ms: int, max_ms: int, random: Callable[[], float]) -> None:
        self._first_ms = first_ms
        self._max_ms = max_ms
        self._random = random
        self._failures = 0

    def next_s(self) -> float:
        pause_ms: float = min(self._first_ms * 2 ** min(self._failures, _DOUBLINGS_MAX), self._max_ms)
        self._failures += 1
        return pause_ms / 1000 * (1 + _JITTER * (2 * self._random() - 1))

    def reset(self) -> None:
        self._failures = 0
