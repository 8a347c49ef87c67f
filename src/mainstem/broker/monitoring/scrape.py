"""Makes the text of one scrape: asks every collector for its families, a millisecond at a time.

A node of ten thousand partitions has tens of thousands of samples. They are made on the event loop, where the
state is, in turns between which everybody else is served. However often somebody asks, at most a small share
of the time goes into it: a text is given out again until ten times as long has passed as it took to make.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from mainstem.broker.turns import Turns
from mainstem.metrics import Exposition, label

# Adds families to an exposition. It yields where it may be interrupted, at least every millisecond, and must
# then expect that things have changed: it may not hold an iterator over something of the node.
Collector = Callable[[Exposition], Iterator[None]]

_REUSE_FACTOR: Final = 10
SAMPLES_PER_FAMILY_MAX: Final = 100_000


class Scraper:
    """The collectors of one node."""

    def __init__(self, turns: Turns, samples_max: int = SAMPLES_PER_FAMILY_MAX) -> None:
        self._turns = turns
        self._samples_max = samples_max
        self._collectors: list[Collector] = []
        self._running: asyncio.Task[list[bytes]] | None = None
        self._last: list[bytes] | None = None
        self._forget_timer: asyncio.TimerHandle | None = None
        self.scrapes = 0
        self.busy_seconds = 0.0

    def add(self, *collectors: Collector) -> None:
        """Have these asked as well, after those that are known."""
        self._collectors += collectors

    async def scrape(self) -> list[bytes]:
        """The text. Whoever asks while it is being made gets the same one."""
        if self._last is not None:
            return self._last
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._scrape())
            self._running.add_done_callback(self._done)
        return await asyncio.shield(self._running)

    def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
        self.forget()

    def _done(self, task: asyncio.Task[list[bytes]]) -> None:
        self._running = None

    async def _scrape(self) -> list[bytes]:
        exposition = Exposition(self._samples_max)
        chunks: list[bytes] = []
        turn = self._turns.begin()
        for _ in self._steps(exposition, chunks):
            await turn.yield_to_loop()
        busy_seconds = turn.busy_seconds
        self.scrapes += 1
        self.busy_seconds += busy_seconds
        self._last = chunks
        loop = asyncio.get_running_loop()
        self._forget_timer = loop.call_later(busy_seconds * _REUSE_FACTOR, self.forget)
        return chunks

    def _steps(self, exposition: Exposition, chunks: list[bytes]) -> Iterator[None]:
        for collect in self._collectors:
            yield from collect(exposition)
            yield
        self._add_own(exposition)
        for chunk in exposition.chunks():
            chunks.append(chunk)
            yield

    def _add_own(self, exposition: Exposition) -> None:
        left_out = [family for family in exposition.families.values() if family.left_out]
        exposition.counter("mainstem_scrapes_total", "Scrapes made, besides this one.").add(self.scrapes)
        exposition.counter(
            "mainstem_scrape_busy_seconds_total", "Time on the event loop that the making of scrapes took."
        ).add(self.busy_seconds)
        missing = exposition.gauge(
            "mainstem_scrape_samples_left_out",
            "Samples that were left out of this scrape: too many of a name.",
        )
        for family in left_out:
            missing.add(family.left_out, label("name", family.name))

    def forget(self) -> None:
        """The next one to ask gets a new text."""
        self._last = None
        if self._forget_timer is not None:
            self._forget_timer.cancel()
            self._forget_timer = None
