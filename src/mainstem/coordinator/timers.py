"""Deadlines of a state machine, without a clock: the shell asks for the next one and says when it has come.

Sessions are extended far more often than they end, so moving a deadline back costs a dictionary look-up; the
heap is touched when the old deadline comes round.
"""

from collections.abc import Callable, Hashable
from heapq import heapify, heappop, heappush
from itertools import count

_STALE_MAX = 64


class _Timer:
    __slots__ = ("callback", "deadline_ms", "queued_ms")

    def __init__(self, deadline_ms: int, callback: Callable[[int], None]) -> None:
        self.deadline_ms = deadline_ms
        self.queued_ms = deadline_ms
        self.callback = callback


class Timers:
    """At most one timer for each key."""

    __slots__ = ("_heap", "_order", "_timers")

    def __init__(self) -> None:
        self._timers: dict[Hashable, _Timer] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._timers)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._timers

    def schedule(self, key: Hashable, deadline_ms: int, callback: Callable[[int], None]) -> None:
        """Call `callback(now_ms)` at the deadline, in place of what was scheduled for this key before."""
        timer = self._timers.get(key)
        if timer is None:
            self._timers[key] = _Timer(deadline_ms, callback)
        else:
            timer.deadline_ms = deadline_ms
            timer.callback = callback
            if deadline_ms >= timer.queued_ms:
                return
            timer.queued_ms = deadline_ms
        heappush(self._heap, (deadline_ms, next(self._order), key))
        if len(self._heap) > 2 * len(self._timers) + _STALE_MAX:
            self._compact()

    def cancel(self, key: Hashable) -> None:
        self._timers.pop(key, None)

    def _compact(self) -> None:
        """Drop what was cancelled or moved: far deadlines would else stay in the heap for weeks."""
        for timer in self._timers.values():
            timer.queued_ms = timer.deadline_ms
        self._heap = [(timer.deadline_ms, next(self._order), key) for key, timer in self._timers.items()]
        heapify(self._heap)

    def clear(self) -> None:
        self._timers.clear()
        self._heap.clear()

    def next_deadline(self) -> int | None:
        """When `run_next` should be called at the latest. Nothing may be due then: a deadline has moved."""
        heap, timers = self._heap, self._timers
        while heap:
            queued_ms, _, key = heap[0]
            timer = timers.get(key)
            if timer is not None and timer.queued_ms == queued_ms:
                return queued_ms
            heappop(heap)
        return None

    def run_next(self, now_ms: int) -> bool:
        """Call the first one whose deadline has come; False when there is none."""
        timers = self._timers
        while self._heap and self._heap[0][0] <= now_ms:
            queued_ms, _, key = heappop(self._heap)
            timer = timers.get(key)
            if timer is None or timer.queued_ms != queued_ms:
                continue
            if timer.deadline_ms > now_ms:
                timer.queued_ms = timer.deadline_ms
                heappush(self._heap, (timer.deadline_ms, next(self._order), key))
            else:
                del timers[key]
                timer.callback(now_ms)
                return True
        return False
