"""What a node does by the clock: retention, compaction, checkpoints, expiry, removal of deleted files.

Decisions are short and run on the event loop; whatever waits for a disk runs in a thread.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from mainstem.broker.logs.log_cleaner import LogCleaner
from mainstem.broker.logs.retention import remove_old_segments
from mainstem.logs import about
from mainstem.protocol.errors import KafkaError
from mainstem.storage.files.deletion import remove_path
from mainstem.storage.log import Log

if TYPE_CHECKING:
    from mainstem.broker.logs.replicas import Replicas
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)

_DELETED_FILES_SECONDS_MAX = 5.0
_UNMADE_LOGS_SECONDS = 1.0  # how often what could not be made is tried again


class Maintenance:
    """The periodic tasks of a node, from `start` until `stop`."""

    def __init__(self, server: "SharedServer", replicas: "Replicas") -> None:
        self._server = server
        self._replicas = replicas
        self._tasks: list[asyncio.Task[None]] = []
        self._high_watermarks: dict[tuple[str, int], int] = {}
        self.cleaner = LogCleaner(server, replicas)

    def start(self) -> None:
        server = self._server
        config = server.config
        first = config.get("log.initial.task.delay.ms") / 1000
        delete_delay = config.get("log.segment.delete.delay.ms") / 1000
        self._every("log.retention.check.interval.ms", first, self._apply_retention)
        self._every("log.flush.offset.checkpoint.interval.ms", first, self._checkpoint)
        self._every("log.flush.start.offset.checkpoint.interval.ms", first, self._checkpoint)
        self._every("replica.high.watermark.checkpoint.interval.ms", first, self._checkpoint_high_watermarks)
        seconds = max(0.05, min(_DELETED_FILES_SECONDS_MAX, delete_delay))
        self._spawn(self._repeat(lambda: seconds, seconds, self._remove_deleted))
        pause = _UNMADE_LOGS_SECONDS
        self._spawn(self._repeat(lambda: pause, pause, self._replicas.retry_unmade))
        self.cleaner.start()

    def reconfigured(self) -> None:
        """The broker's settings may be others now."""
        self.cleaner.reconfigured()

    async def stop(self) -> None:
        await self.cleaner.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    def _every(self, setting: str, first: float, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        server = self._server
        self._spawn(self._repeat(lambda: server.config.get(setting) / 1000, first, work))

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(self._server.loop.create_task(coroutine))

    async def _repeat(
        self, interval: Callable[[], float], first: float, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        await asyncio.sleep(first)
        while True:
            try:
                await work()
            except Exception:
                logger.exception("maintenance failed; it is tried again at its next turn")
            await asyncio.sleep(interval())

    async def _apply_retention(self) -> None:
        turn = self._server.turns.begin()
        for partition in list(self._replicas.all()):
            if not self.cleaner.is_cleaning(partition.log):
                remove_old_segments(self._server, partition)
            await turn.yield_to_loop()

    async def _checkpoint(self) -> None:
        """Make closed segments durable and write down up to where: a crash then costs a short scan only."""
        for log in list(self._server.log_manager):
            if log.recovery_point < log.segments.active.base_offset and log.health.failure is None:
                await self._flush(log)
        self._server.log_manager.checkpoint(sync=False)

    async def _flush(self, log: Log) -> None:
        try:
            work = log.flush_begin()
            await self._server.loop.run_in_executor(None, work.run)
        except KafkaError as error:
            logger.error("cannot flush %s: %s", log.name, error, extra=about(log))
            return
        log.flush_end(work, self._server.clock.now_ms())

    async def _checkpoint_high_watermarks(self) -> None:
        offsets = {(p.topic, p.index): p.high_watermark for p in self._replicas.all()}
        if offsets != self._high_watermarks:
            self._high_watermarks = offsets
            self._server.log_manager.checkpoint_high_watermarks(offsets, sync=False)

    async def _remove_deleted(self) -> None:
        environment = self._server.log_manager.environment
        while due := environment.deletions.take_due(self._server.clock.now_ms(), 16):
            for path in due:
                await self._server.loop.run_in_executor(None, remove_path, environment.files, path)
