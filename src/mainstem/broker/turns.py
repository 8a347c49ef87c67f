"""Long work on the event loop, a little at a time: whoever else has something to do is served in between.

Work that is new has a first turn at once, so that what is short is done at once. What is left goes on in the
turns of the loop that follow, one piece of work in each and all of them in a circle, so that none waits for
another one to be finished.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from typing import Final, Protocol

logger = logging.getLogger(__name__)

_TURN_SECONDS_MAX: Final = 0.005


class Work(Protocol):
    """Something that can stop anywhere and go on later."""

    def go_on(self, until: float) -> bool:
        """Do a part of it, some at least, and stop when the loop's clock shows this; whether more is left."""


class Turns:
    """The work that is not finished yet."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Work] = deque()
        self._closed = False

    def begin(self, works: Iterable[Work]) -> None:
        """Do it now, as far as one turn goes."""
        until = self._loop.time() + _TURN_SECONDS_MAX
        for work in works:
            if self._loop.time() >= until or work.go_on(until):
                self.later(work)

    def later(self, work: Work) -> None:
        """Do it from the next turn of the loop on."""
        if not self._closed:
            if not self._waiting:
                self._loop.call_soon(self._next)
            self._waiting.append(work)

    def close(self) -> None:
        """What is left is not done any more."""
        self._closed = True
        self._waiting.clear()

    def _next(self) -> None:
        if not self._waiting:
            return
        work = self._waiting.popleft()
        try:
            is_left = work.go_on(self._loop.time() + _TURN_SECONDS_MAX)
        except Exception:
            logger.exception("work was given up")
            is_left = False
        if is_left and not self._closed:
            self._waiting.append(work)
        if self._waiting:
            self._loop.call_soon(self._next)
