"""Moves partitions from one log directory to another, as AlterReplicaLogDirs asks for it.

The copying is done in a thread, one piece of one partition at a time; appends and fetches go on. Only the
last bytes are copied on the event loop, together with the change of place: nobody sees anything in between.
"""

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from mainstem.broker.logs.partition import Partition
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.storage.directories.log_dir import FUTURE_SUFFIX, LogDir
from mainstem.storage.directories.moving import PIECE_BYTES, CopyWork, LogMove, MoveCancelledError
from mainstem.storage.errors import storage_error

if TYPE_CHECKING:
    from mainstem.broker.logs.log_cleaner import LogCleaner
    from mainstem.broker.logs.replicas import Replicas
    from mainstem.broker.metadata.log_dir_assignments import LogDirAssignments
    from mainstem.broker.shared_server import SharedServer

logger = logging.getLogger(__name__)

_NAME_BYTES_MAX = 255
_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
# With a limit, a piece is what may be copied in this time, so that the limit holds over any second.
_PIECE_SECONDS = 0.1
_PIECE_BYTES_MIN = 4096
_WAIT_SECONDS = 0.002


class LogDirMoves:
    """The moves of a node."""

    def __init__(
        self,
        server: "SharedServer",
        replicas: "Replicas",
        cleaner: "LogCleaner",
        assignments: "LogDirAssignments",
    ) -> None:
        self._server = server
        self._replicas = replicas
        self._cleaner = cleaner
        self._assignments = assignments
        self._one_at_a_time = asyncio.Lock()
        self._tasks: dict[Partition, asyncio.Task[None]] = {}
        self._stopping = False

    def resume(self) -> None:
        """Begin again with the moves that the last stop interrupted."""
        for log, target in self._server.log_manager.interrupted_moves:
            try:
                self._begin(self._replicas.by_topic(log.topic, log.partition), target)
            except KafkaError as error:
                logger.error("cannot go on with moving %s to %s: %s", log.name, target.path, error.message)
        self._server.log_manager.interrupted_moves.clear()

    def alter(self, topic: str, index: int, path: str) -> None:
        """Have a partition in this directory from now on; KafkaError when that cannot be."""
        if len(f"{topic}-{index}.{'0' * 32}{FUTURE_SUFFIX}") > _NAME_BYTES_MAX:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"the name of {topic} is too long to be moved"
            )
        target = self._directory(path)
        partition = self._replicas.by_topic(topic, index)
        partition.log.health.check()
        manager = self._server.log_manager
        move = manager.moves.get((topic, index))
        if move is not None and move.target is target:
            return
        if move is not None:
            manager.cancel_move(partition.log, self._server.clock.now_ms())
        if manager.dir_of(partition.log) is target:
            return
        if target in manager.cordoned:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{path} takes no replicas (cordoned.log.dirs)"
            )
        if len(manager.online_dirs) < len(manager.dirs):
            raise storage_error("nothing is moved while a log directory is offline")
        self._begin(partition, target)

    def _directory(self, path: str) -> LogDir:
        wanted = Path(path)
        for log_dir in self._server.log_manager.dirs:
            if wanted.is_absolute() and log_dir.path.absolute() == wanted:
                log_dir.health.check()
                return log_dir
        raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not one of log.dirs, as an absolute path")

    def _begin(self, partition: Partition, target: LogDir) -> None:
        move = self._server.log_manager.begin_move(partition.log, target)
        logger.info("moving %s from %s to %s", partition, move.source.path, target.path)
        self._cleaner.break_off(partition.log)  # and it does not begin again until the move is over
        former = self._tasks.get(partition)
        self._tasks[partition] = self._server.loop.create_task(self._run(partition, move, former))

    async def stop(self) -> None:
        """Wait for what is being copied; the rest is copied after the next start."""
        self._stopping = True
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _run(self, partition: Partition, move: LogMove, former: asyncio.Task[None] | None) -> None:
        if former is not None:
            await asyncio.wait([former])
        try:
            async with self._one_at_a_time:
                await self._copy(partition, move)
        except MoveCancelledError:
            pass
        except KafkaError as error:
            logger.error("cannot move %s to %s: %s", partition, move.target.path, error.message)
            if not move.cancelled:
                self._server.log_manager.cancel_move(move.log, self._server.clock.now_ms())
        finally:
            if self._tasks.get(partition) is asyncio.current_task():
                del self._tasks[partition]

    async def _copy(self, partition: Partition, move: LogMove) -> None:
        loop = self._server.loop
        is_recorded = False
        while not (self._stopping or move.cancelled):
            if move.may_finish and not is_recorded:
                # First, so that a start without the new directory does not go on with the former one.
                await self._record(partition, move)
                is_recorded = True
            elif move.may_finish and self._is_at_rest(partition):
                await self._finish(partition, move)
                return
            work = move.next_copy(
                max(_PIECE_BYTES_MIN, min(PIECE_BYTES, int(self._bytes_per_second() * _PIECE_SECONDS)))
            )
            if work is None:  # only a flush or a compaction is waited for
                await asyncio.sleep(_WAIT_SECONDS)
                continue
            began = loop.time()
            await loop.run_in_executor(None, work.run)
            move.copied(work)
            await self._pace(work, move, began)

    def _is_at_rest(self, partition: Partition) -> bool:
        """Whether nobody is at work on the files, to whom it would matter that they are others now."""
        return not (partition.is_flushing or self._cleaner.is_cleaning(partition.log))

    def _bytes_per_second(self) -> int:
        rate: int = self._server.config.get(_RATE)
        return max(1, rate)

    async def _pace(self, work: CopyWork, move: LogMove, began: float) -> None:
        """Rest until the piece has taken as long as the limit wants; a new limit counts at once."""
        while not (self._stopping or move.cancelled):
            left = began + work.size / self._bytes_per_second() - self._server.loop.time()
            if left <= 0:
                return
            await asyncio.sleep(min(left, _PIECE_SECONDS))

    async def _record(self, partition: Partition, move: LogMove) -> None:
        if move.target.meta is not None:
            await self._assignments.assign(partition.topic_id, partition.index, move.target.meta.directory_id)

    async def _finish(self, partition: Partition, move: LogMove) -> None:
        server = self._server
        old_folder = move.log.directory
        clean_offset = self._cleaner.clean_offset_of(move.log)
        for _ in server.log_manager.finish_move(move, server.clock.now_ms()):
            pass  # nothing else may run between the steps
        self._cleaner.relocated(move.log, clean_offset)
        logger.info("moved %s to %s", partition, move.target.path)
        due_ms = server.clock.now_ms() + move.log.config.file_delete_delay_ms
        try:
            await server.loop.run_in_executor(
                None, lambda: list(server.log_manager.settle_move(move, old_folder, due_ms))
            )
        except OSError as error:
            logger.error("the former folder %s stays until the next start: %s", old_folder, error)
