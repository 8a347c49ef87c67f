"""Virtual time and a network for simulations: what happens, happens in one order that a seed decides."""

import heapq
import random
from collections.abc import Callable
from itertools import count

Action = Callable[[], None]


class Schedule:
    """What is still to happen, in the order of its time."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._queue: list[tuple[int, int, Action]] = []
        self._order = count()

    def after(self, delay_ms: int, action: Action) -> None:
        heapq.heappush(self._queue, (self.now_ms + delay_ms, next(self._order), action))

    def run_until(self, time_ms: int) -> None:
        while self._queue and self._queue[0][0] <= time_ms:
            self.now_ms, _, action = heapq.heappop(self._queue)
            action()
        self.now_ms = time_ms


class Network:
    """Brings messages from one place to another; each one has its own delay, so that they overtake each
    other. A pair of places that is `blocked` is cut off in that one direction.
    """

    def __init__(self, schedule: Schedule, rng: random.Random) -> None:
        self._schedule = schedule
        self._random = rng
        self.delay_ms_max = 5
        self.lost = 0.0
        self.doubled = 0.0
        self.blocked: set[tuple[int, int]] = set()

    def carry(self, source: int, target: int, deliver: Action) -> None:
        if (source, target) in self.blocked or self._random.random() < self.lost:
            return
        self._schedule.after(self._random.randint(1, self.delay_ms_max), deliver)
        if self._random.random() < self.doubled:
            self._schedule.after(self._random.randint(1, 20 * self.delay_ms_max), deliver)

    def heal(self) -> None:
        self.delay_ms_max = 5
        self.lost = self.doubled = 0.0
        self.blocked.clear()
