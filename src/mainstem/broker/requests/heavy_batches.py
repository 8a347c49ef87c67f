"""Batches that take long to check, beside the event loop: other requests go on meanwhile.

What is compiled code runs in threads, of which few are used at a time, so that what the batches become
without their compression has a bound; what is Python goes on the event loop in turns of a millisecond.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from mainstem.broker.network.buffers import RequestMemory
from mainstem.broker.turns import Turns
from mainstem.storage.incoming.heavy_batch import HeavyBatch

_AT_ONCE_MAX: Final = 2


class HeavyBatches:
    """The batches of parked requests that are being checked."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: Turns, memory: RequestMemory) -> None:
        self._turns = turns
        self._loop = loop
        self._memory = memory
        self._lanes = asyncio.Semaphore(_AT_ONCE_MAX)
        self._tasks: set[asyncio.Task[None]] = set()

    def prepare(self, batches: Sequence[HeavyBatch], byte_count: int, then: Callable[[], None]) -> bool:
        """Check the batches of a request, which hold so many bytes, and call `then`. False when too many
        requests wait already: this one has to be served without.
        """
        if not self._memory.try_reserve(byte_count):
            return False
        task = self._loop.create_task(self._prepare(batches, byte_count, then))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    def close(self) -> None:
        """What is not checked yet is not appended any more."""
        for task in self._tasks:
            task.cancel()

    async def _prepare(
        self, batches: Sequence[HeavyBatch], byte_count: int, then: Callable[[], None]
    ) -> None:
        try:
            async with self._lanes:
                for batch in batches:
                    if batch.wants_keys:
                        await self._loop.run_in_executor(None, batch.open)
                        turn = self._turns.begin()
                        while batch.check_some():
                            await turn.yield_to_loop()
                    if batch.wants_compression:
                        await self._loop.run_in_executor(None, batch.recompress)
                    batch.finish()
        finally:
            self._memory.release(byte_count)
        then()
