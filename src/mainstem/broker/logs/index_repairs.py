"""Has damaged transaction indexes made again, one after the other, each by a child process.

Whoever needs such an index is told to try again later. What a repair brings counts only if the log has not
been cut meanwhile and nobody else has made the index.
"""

import asyncio
import logging
from typing import Final

from mainstem.broker.processes import Processes
from mainstem.logs import about
from mainstem.protocol.errors import KafkaError
from mainstem.storage.files.deletion import remove_if_there
from mainstem.storage.log import Log
from mainstem.storage.producers.index_repair import EXIT_DAMAGED, command, result_path
from mainstem.storage.producers.producers import cannot_repair

logger = logging.getLogger(__name__)

# Until one that did not succeed is tried again, when somebody asks.
_PAUSE_SECONDS: Final = 1.0


class IndexRepairs:
    """The repairs of a node."""

    def __init__(self, loop: asyncio.AbstractEventLoop, processes: Processes) -> None:
        self._loop = loop
        self._processes = processes
        self._one_at_a_time = asyncio.Lock()
        self._running: dict[tuple[Log, int], asyncio.Task[None]] = {}
        # Of segments that are damaged themselves.
        self._hopeless: dict[tuple[Log, int], KafkaError] = {}

    def ask(self, log: Log, base_offset: int) -> None:
        """See `LogEnvironment.repair_index`."""
        key = (log, base_offset)
        if key in self._hopeless:
            raise self._hopeless[key]
        if key not in self._running:
            self._running[key] = self._loop.create_task(self._repair(log, base_offset))

    async def stop(self) -> None:
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _repair(self, log: Log, base_offset: int) -> None:
        try:
            async with self._one_at_a_time:
                is_done = await self._repair_now(log, base_offset)
            if not is_done:
                await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            del self._running[log, base_offset]

    async def _repair_now(self, log: Log, base_offset: int) -> bool:
        """False when it may be tried again."""
        if base_offset not in log.segments.bases:
            return True  # retention was quicker
        logger.warning(
            "making the transaction index of %s from offset %d on again",
            log.name,
            base_offset,
            extra=about(log, offset=base_offset),
        )
        directory, truncations = log.directory, log.truncations
        size = log.segments[log.segments.number_of(base_offset)].size
        path = result_path(directory, base_offset)
        try:
            status, message = await self._processes.run(command(directory, base_offset, size))
            index = log.producers.aborted.get(base_offset)
            if index is None or not index.is_damaged or log.truncations != truncations:
                remove_if_there(log.environment.files, path)  # it is of no use any more
                return True
            if status == 0:
                log.producers.aborted.adopt(base_offset, path)
                return True
        except OSError as failure:
            status, message = -1, str(failure)
        error = cannot_repair(log.name, base_offset, message)
        logger.error(error.message, extra=about(log, offset=base_offset, cause=error))
        if status == EXIT_DAMAGED:
            self._hopeless[log, base_offset] = error
        return False
