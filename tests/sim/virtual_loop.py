"""An event loop in which nobody waits: its time goes on to the next thing that happens, and the same random
numbers give the same history.
"""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from random import Random
from typing import Any

from tests.sim.seeds import Violation

_THREAD_SECONDS_MAX = 0.01


class VirtualLoop(asyncio.SelectorEventLoop):
    """It has no sockets. What is given to a thread is done in this one, a little later."""

    def __init__(self, random: Random) -> None:
        self._virtual_now = 0.0
        self._random = random
        super().__init__(_NoWaiting(self))

    def time(self) -> float:
        return self._virtual_now

    def advance(self, seconds: float) -> None:
        self._virtual_now += seconds

    def run_in_executor(  # type: ignore[override]  # what asyncio returns there is awaited, like this
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self.create_future()

        def run() -> None:
            if future.cancelled():
                return
            try:
                result = func(*args)
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self.call_later(self._random.uniform(0, _THREAD_SECONDS_MAX), run)
        return future


class _NoWaiting(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Violation("stuck: nothing will ever happen again")
        self._loop.advance(timeout)
        return []
