"""Hands out producer ids from the block that the controller granted; asks for the next block when it is
used up.

A block is recorded in the cluster metadata before its first id is issued, so that no id is ever issued twice,
not even after a crash: what was left of the block is then lost, which is fine.
"""

import asyncio
from collections.abc import Awaitable, Callable


class ProducerIds:
    """The ids of the current block. `allocate_block` records a new one and returns (first id, count)."""

    def __init__(self, allocate_block: Callable[[], Awaitable[tuple[int, int]]]) -> None:
        self._allocate_block = allocate_block
        self._next = 0
        self._end = 0
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        """An id that was never issued before."""
        while self._next >= self._end:
            async with self._lock:
                if self._next >= self._end:
                    first, count = await self._allocate_block()
                    self._next, self._end = first, first + count
        producer_id = self._next
        self._next += 1
        return producer_id
