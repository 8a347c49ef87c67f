"""The one way out of the metadata log: committed changes go to the publishers, one after the other.

A publisher makes one part of the broker look as the image says. All of them see a change before any of them
sees the next, always in the same order, and only then is the change applied: whoever decided it is answered.
That is the same on every node, whether it made the records or replayed them.

A publisher has no way to refuse. What it cannot do (a log for which there is no room) becomes a state of its
own that can be seen and is tried again; an exception is a mistake in the program, and keeps nobody else from
the change.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from mainstem.broker.metadata.log import MetadataLog
from mainstem.cluster.delta import MetadataChanges
from mainstem.cluster.image import MetadataImage
from mainstem.protocol.errors import KafkaError

logger = logging.getLogger(__name__)


class MetadataPublisher(Protocol):
    """Acts on changes of the metadata. It may give others their turn meanwhile."""

    async def publish(self, image: MetadataImage, changes: MetadataChanges) -> None: ...


class MetadataLoader:
    """Takes over what the metadata log has committed. Made when the log is replayed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, log: MetadataLog) -> None:
        self._loop = loop
        self._log = log
        self._applied_offset = log.image.offset
        self._publishers: tuple[MetadataPublisher, ...] = ()
        self._changes: deque[tuple[MetadataImage, MetadataChanges]] = deque()
        # By the offset they wait for, which never goes back from one to the next.
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._mistake: Exception | None = None  # the first one that a publisher made
        log.listener = self

    @property
    def applied_offset(self) -> int:
        """All publishers have seen the metadata up to here."""
        return self._applied_offset

    async def begin(self, publishers: Sequence[MetadataPublisher]) -> None:
        """Tell the publishers, in this order, of everything that there is, and then of every change: once the
        quorum has said how much is committed. Raises what a publisher raises: a node that cannot begin must
        not look as if it had.
        """
        await self._log.ready()
        while self._task is not None:
            await asyncio.wait([self._task])
        self._publishers = tuple(publishers)
        self.committed(self._log.image, MetadataChanges.everything(self._log.image))
        assert self._task is not None
        await asyncio.wait([self._task])
        if self._mistake is not None:
            raise self._mistake

    async def applied(self, offset: int) -> None:
        """Wait until all publishers have seen the change that ends at `offset`; KAFKA_STORAGE_ERROR when it
        could not be written. Whoever waits for what a stop leaves unpublished is cancelled.
        """
        if offset <= self._applied_offset:
            return
        if self._stopped:
            raise asyncio.CancelledError
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append((offset, waiter))
        await waiter

    async def stop(self) -> None:
        """Publish nothing more. What is committed now is made good by the next start."""
        self._stopped = True
        self._changes.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for _, waiter in self._waiters:
            waiter.cancel()
        self._waiters.clear()

    # ---- of the metadata log

    def committed(self, image: MetadataImage, changes: MetadataChanges) -> None:
        if self._stopped:
            return
        self._changes.append((image, changes))
        if self._task is None:
            self._task = self._loop.create_task(self._run())

    def failed(self, error: KafkaError) -> None:
        """What was written and is not committed never will be."""
        while self._waiters and self._waiters[-1][0] > self._log.image.offset:
            _, waiter = self._waiters.pop()
            if not waiter.done():
                waiter.set_exception(KafkaError(error.code, error.message))

    # ---- publishing

    async def _run(self) -> None:
        try:
            while self._changes:
                image, changes = self._changes.popleft()
                for publisher in self._publishers:
                    await self._publish(publisher, image, changes)
                self._applied(image.offset)
        finally:
            self._task = None

    async def _publish(
        self, publisher: MetadataPublisher, image: MetadataImage, changes: MetadataChanges
    ) -> None:
        try:
            await publisher.publish(image, changes)
        except Exception as mistake:
            self._mistake = self._mistake or mistake
            logger.exception("%s failed at the metadata of offset %d", type(publisher).__name__, image.offset)

    def _applied(self, offset: int) -> None:
        self._applied_offset = offset
        while self._waiters and self._waiters[0][0] <= offset:
            _, waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
