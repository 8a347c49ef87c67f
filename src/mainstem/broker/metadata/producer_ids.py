"""Hands out producer ids from the blocks that the controller grants; asks for the next block when most of the
current one is used up, so that nobody has to wait for it.

A block is recorded in the cluster metadata before its first id is issued, so that no id is ever issued twice,
by whatever broker, not even after a crash: what was left of the blocks is then lost, which is fine.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from mainstem.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

# The share of a block after which the next one is asked for.
_PREFETCH_AFTER: Final = 0.9
# There is no block yet, for the controller cannot be reached or this broker is not known to it: clients hear
# of it by the one error after which they ask again.
_PASSING: Final = (
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.STALE_BROKER_EPOCH,
    ErrorCode.BROKER_ID_NOT_REGISTERED,
)


class ProducerIds:
    """The ids of the current block. `allocate_block` records a new one and returns (first id, count)."""

    def __init__(self, allocate_block: Callable[[], Awaitable[tuple[int, int]]]) -> None:
        self._allocate_block = allocate_block
        self._next = 0
        self._end = 0
        # From this id on the next block is asked for.
        self._prefetch_from = 0
        # The block after this one, once it is asked for.
        self._coming: asyncio.Future[tuple[int, int]] | None = None

    async def next(self) -> int:
        """An id that was never issued before; KafkaError when there is no block to be had."""
        while self._next >= self._end:
            await self._take_block()
        producer_id = self._next
        self._next += 1
        if self._next >= self._prefetch_from and self._coming is None:
            self._ask()
        return producer_id

    async def _take_block(self) -> None:
        """Have the next block, for which any number may wait. One that failed is asked for anew."""
        coming = self._coming
        if coming is None or _has_failed(coming):
            coming = self._ask()
        try:
            first, count = await asyncio.shield(coming)
        except KafkaError as error:
            if error.code in _PASSING:
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, error.message) from error
            raise
        if self._coming is coming:
            self._coming = None
            self._next, self._end = first, first + count
            self._prefetch_from = first + int(count * _PREFETCH_AFTER)

    def _ask(self) -> "asyncio.Future[tuple[int, int]]":
        self._coming = coming = asyncio.ensure_future(self._allocate_block())
        coming.add_done_callback(_log_failure)
        return coming

    def close(self) -> None:
        """No more is asked for."""
        if self._coming is not None:
            self._coming.cancel()


def _has_failed(coming: "asyncio.Future[tuple[int, int]]") -> bool:
    return coming.done() and (coming.cancelled() or coming.exception() is not None)


def _log_failure(coming: "asyncio.Future[tuple[int, int]]") -> None:
    if not coming.cancelled() and coming.exception() is not None:
        logger.warning("no producer ids are to be had: %s", coming.exception())
