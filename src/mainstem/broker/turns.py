"""How work yields to the event loop: it is done a little at a time, and whoever else has something to do is
served in between.

All such work has turns of a bounded length. New work has its first turn at once, so that what is short is
done at once. What is left waits in one circle with all other such work, and every pass of the loop goes on
with one piece of it: none waits for another to be finished, and a request that has just come in waits for one
piece at most.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from typing import Final, Protocol

from mainstem.broker.clock import Clock

logger = logging.getLogger(__name__)

TURN_MS: Final = 1
LONG_TURN_MS: Final = 5  # for what somebody waits for and is not often more than this


class Turn:
    """The time that one piece of work has before others have theirs."""

    __slots__ = ("_began_ns", "_busy_ns", "_clock", "_length_ns", "_turns")

    def __init__(self, turns: "Turns", clock: Clock, length_ms: int) -> None:
        self._turns = turns
        self._clock = clock
        self._length_ns = length_ms * 1_000_000
        self._busy_ns = 0
        self._began_ns = clock.ticks_ns()

    @property
    def is_over(self) -> bool:
        return self._clock.ticks_ns() - self._began_ns >= self._length_ns

    async def yield_to_loop(self) -> None:
        """Let others go on if the turn is over, and have another one. What the work looks at may then have
        changed.
        """
        taken_ns = self._clock.ticks_ns() - self._began_ns
        if taken_ns >= self._length_ns:
            self._busy_ns += taken_ns
            await self._turns.next_turn()
            self._began_ns = self._clock.ticks_ns()

    @property
    def busy_seconds(self) -> float:
        """What the work took so far, without the time that others had."""
        return (self._busy_ns + self._clock.ticks_ns() - self._began_ns) / 1e9


class Work(Protocol):
    """Something that can stop anywhere and go on later."""

    def go_on(self, turn: Turn) -> bool:
        """Do a part of it, some at least, and stop when the turn is over; whether more is left."""


class Turns:
    """The work of a node that is not finished yet."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._waiting: deque[Work] = deque()
        self._is_scheduled = False
        self._closed = False

    def begin(self, length_ms: int = TURN_MS) -> Turn:
        """A turn that begins now."""
        return Turn(self, self._clock, length_ms)

    def run(self, works: Iterable[Work]) -> None:
        """Do it now, as far as one turn goes, and the rest later."""
        turn = self.begin(LONG_TURN_MS)
        for work in works:
            if turn.is_over or work.go_on(turn):
                self.later(work)

    def later(self, work: Work) -> None:
        """Do it from the next pass of the loop on."""
        if not self._closed:
            self._waiting.append(work)
            self._schedule()

    async def next_turn(self) -> None:
        """Wait in the circle, for a coroutine that goes on by itself."""
        if self._closed:
            await asyncio.sleep(0)
            return
        waiter = _Waiter(self._loop)
        self.later(waiter)
        await waiter.future

    def close(self) -> None:
        """What is left is not done any more; coroutines go on until they are cancelled."""
        self._closed = True
        waiting, self._waiting = self._waiting, deque()
        for work in waiting:
            if isinstance(work, _Waiter):
                work.wake()

    def _schedule(self) -> None:
        if self._waiting and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        self._is_scheduled = False
        if not self._waiting:
            return
        work = self._waiting.popleft()
        try:
            is_left = work.go_on(self.begin())
        except Exception:
            logger.exception("work was given up")
            is_left = False
        if is_left and not self._closed:
            self._waiting.append(work)
        self._schedule()


class _Waiter:
    """A coroutine that waits for its next turn."""

    __slots__ = ("future",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[None] = loop.create_future()

    def go_on(self, turn: Turn) -> bool:
        self.wake()
        return False

    def wake(self) -> None:
        if not self.future.done():  # else it was cancelled
            self.future.set_result(None)
