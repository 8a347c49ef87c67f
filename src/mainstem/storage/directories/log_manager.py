"""All logs of a node, over one or more directories: loading, creating, deleting, checkpoints.

It decides where a log lies and when its files go; what is in a log is the log's own business. Nothing here
runs by itself: the broker calls it with the time.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from random import Random

from mainstem.config import LogConfig
from mainstem.logs import about
from mainstem.protocol.errors import KafkaError
from mainstem.protocol.resources import TopicPartition
from mainstem.protocol.uuids import random_uuid
from mainstem.storage.directories.choosing import choose_dir
from mainstem.storage.directories.contested import Superfluous, superfluous_folders
from mainstem.storage.directories.log_dir import (
    DELETE_SUFFIX,
    FUTURE_SUFFIX,
    STRAY_SUFFIX,
    LogDir,
    retired_folder_name,
)
from mainstem.storage.directories.meta_properties import MetaProperties
from mainstem.storage.directories.moving import LogMove
from mainstem.storage.environment import (
    DEFAULT_OPEN_FILES_MAX,
    DEFAULT_PRODUCER_ID_EXPIRATION_MS,
    LogEnvironment,
)
from mainstem.storage.errors import LogDirInvalidError, storage_error
from mainstem.storage.files.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    read_partition_metadata,
    write_clean_shutdown,
    write_offsets,
    write_partition_metadata,
)
from mainstem.storage.files.files import Files
from mainstem.storage.flush import FlushWork
from mainstem.storage.log import Log

logger = logging.getLogger(__name__)

_FLUSH_THREADS = 16


class LogManager:
    """The logs by topic and partition. One per node; it owns the directories until `close`."""

    def __init__(
        self,
        log_dirs: Sequence[Path],
        *,
        node_id: int,
        now_ms: int,
        cluster_id: str | None = None,
        files: Files | None = None,
        open_files_max: int = DEFAULT_OPEN_FILES_MAX,
        producer_id_expiration_ms: int = DEFAULT_PRODUCER_ID_EXPIRATION_MS,
        random: Random | None = None,
        new_uuid: Callable[[], bytes] = random_uuid,
    ) -> None:
        """Lock and identify the directories. A new one needs a cluster id, given or from another one. One
        that the file system refuses is offline; LogDirInvalidError when that is so for all of them.
        """
        self.environment = LogEnvironment(
            files=files,
            open_files_max=open_files_max,
            producer_id_expiration_ms=producer_id_expiration_ms,
            random=random,
        )
        self._files = self.environment.files
        self._new_uuid = new_uuid
        self._logs: dict[TopicPartition, Log] = {}
        self._dir_of: dict[TopicPartition, LogDir] = {}
        self.dirs: list[LogDir] = []
        # Directories that get no new logs; may be changed at any time.
        self.cordoned: frozenset[LogDir] = frozenset()
        self.moves: dict[TopicPartition, LogMove] = {}
        # Logs with the directory that they were on their way to when the node stopped.
        self.interrupted_moves: list[tuple[Log, LogDir]] = []
        try:
            open_dir = LogDir if len(log_dirs) == 1 else LogDir.usable_or_offline
            for path in log_dirs:
                self.dirs.append(open_dir(self._files, Path(path)))
            self.meta = self._identify(node_id, cluster_id, now_ms)
        except BaseException:
            self._release()
            raise

    def _identify(self, node_id: int, cluster_id: str | None, now_ms: int) -> MetaProperties:
        known = [
            log_dir for log_dir in self.online_dirs if self._files.exists(log_dir.path / "meta.properties")
        ]
        for log_dir in (*known, *(log_dir for log_dir in self.dirs if log_dir not in known)):
            if log_dir.health.failure is None:
                try:
                    cluster_id = log_dir.identify(node_id, cluster_id, self._new_uuid, now_ms).cluster_id
                    log_dir.take_clean_shutdown()
                except OSError as error:
                    log_dir.health.fail(f"cannot use log directory {log_dir.path}: {error.strerror}")
        for log_dir in self.online_dirs:
            if log_dir.meta is not None:
                return log_dir.meta
        if not self.dirs:
            raise LogDirInvalidError("no log directory was given (log.dirs)")
        raise LogDirInvalidError(str(self.dirs[0].health.failure))

    # ---- access

    def get(self, topic: str, partition: int) -> Log | None:
        return self._logs.get((topic, partition))

    def __len__(self) -> int:
        return len(self._logs)

    def __iter__(self) -> Iterator[Log]:
        return iter(list(self._logs.values()))

    def dir_of(self, log: Log) -> LogDir:
        """The directory that a log lies in."""
        return self._dir_of[log.topic, log.partition]

    @property
    def online_dirs(self) -> list[LogDir]:
        """The directories that can be used."""
        return [log_dir for log_dir in self.dirs if log_dir.health.failure is None]

    # ---- loading, creating, deleting

    def load(
        self,
        config_of: Callable[[str], LogConfig],
        now_ms: int,
        topic_id_of: Callable[[str], bytes | None] = lambda topic: None,
    ) -> None:
        """Open the logs of all directories; after a crash, those with a tail to check are recovered. One that
        cannot be read goes offline and leaves the others alone. `topic_id_of`: which topic has a name now.
        """
        folders = {log_dir: self._folders_of(log_dir) for log_dir in self.online_dirs}
        for superfluous in list(superfluous_folders(self._files, folders, topic_id_of)):
            self._put_away(superfluous, folders, now_ms)
        for log_dir, found in folders.items():
            try:
                self._load_dir(log_dir, found, config_of, now_ms)
            except OSError as error:
                log_dir.health.fail(f"cannot load its logs: {error}")
        for log_dir in self.online_dirs:
            try:
                self._find_interrupted_moves(log_dir, now_ms)
            except OSError as error:
                log_dir.health.fail(f"cannot load its logs: {error}")
            except KafkaError as error:
                logger.error(error.message)

    def _folders_of(self, log_dir: LogDir) -> dict[TopicPartition, Path]:
        try:
            return {(topic, partition): folder for topic, partition, folder in log_dir.partition_folders()}
        except OSError as error:
            log_dir.health.fail(f"cannot load its logs: {error}")
            return {}

    def _put_away(
        self, superfluous: Superfluous, folders: dict[LogDir, dict[TopicPartition, Path]], now_ms: int
    ) -> None:
        log_dir, folder, (topic, partition), suffix = superfluous
        del folders[log_dir][topic, partition]
        try:
            retired = self._rename(log_dir, folder, topic, partition, suffix)
        except KafkaError:
            folders[log_dir].clear()  # it is offline now
            return
        if suffix == DELETE_SUFFIX:
            self.environment.deletions.add(retired, now_ms)
        else:
            logger.warning(
                "%s is of an earlier topic of that name; it is now %s", folder, retired,
                extra=about(topic=topic, partition=partition),
            )  # fmt: skip

    def _discard(self, log_dir: LogDir, folder: Path, topic: str, partition: int, due_ms: int) -> None:
        """Have a folder that is of no use removed, under a name by which a crash does not save it."""
        self.environment.deletions.add(self._rename(log_dir, folder, topic, partition, DELETE_SUFFIX), due_ms)

    def _rename(self, log_dir: LogDir, folder: str | Path, topic: str, partition: int, suffix: str) -> str:
        retired = str(log_dir.path / self._retired_name(topic, partition, suffix))
        try:
            self._files.rename(folder, retired)
        except OSError as error:
            raise log_dir.health.refuse(error, f"cannot rename {folder}") from error
        return retired

    def _retired_name(self, topic: str, partition: int, suffix: str) -> str:
        return retired_folder_name(topic, partition, self._new_uuid().hex(), suffix)

    def _find_interrupted_moves(self, log_dir: LogDir, now_ms: int) -> None:
        """What a move has copied so far is given up; the move itself can begin again."""
        for topic, partition, folder in log_dir.future_folders():
            log = self._logs.get((topic, partition))
            if log is None:
                about_it = about(folder=str(folder))
                logger.warning(
                    "leaving %s alone: the log it is a copy of is not there", folder, extra=about_it
                )
                continue
            self._discard(log_dir, folder, topic, partition, now_ms)
            if self.dir_of(log) is not log_dir:
                self.interrupted_moves.append((log, log_dir))

    def _load_dir(
        self,
        log_dir: LogDir,
        folders: Mapping[TopicPartition, Path],
        config_of: Callable[[str], LogConfig],
        now_ms: int,
    ) -> None:
        for folder in log_dir.deleted_folders():
            self.environment.deletions.add(str(folder), now_ms)
        recovery_points = log_dir.recovery_points()
        log_start_offsets = log_dir.log_start_offsets()
        cleaned = log_dir.read_checkpoint(CLEANER_OFFSETS)
        for key, folder in folders.items():
            log = Log.open(
                folder,
                *key,
                None,
                config_of(key[0]),
                now_ms=now_ms,
                clean=log_dir.clean and key in recovery_points,
                recovery_point=recovery_points.get(key, 0),
                log_start_offset=log_start_offsets.get(key, 0),
                cleaned_to=cleaned.get(key, 0),
                health=log_dir.health,
                environment=self.environment,
            )
            self._add(log, log_dir)

    def create(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        now_ms: int,
        *,
        is_new: bool = True,
        directory_id: bytes | None = None,
        may_begin_again: bool = False,
    ) -> Log:
        """The log of this partition, made in the directory with the fewest partitions if it is not there. One
        that is not new is somewhere: without the directory that it is known to be in, or any directory when
        none is known, it must not begin again, empty, in another. It may where nobody counts on what it held
        (`may_begin_again`) once its directory is gone for good: no directory is offline that could be it.
        """
        existing = self._logs.get((topic, partition))
        if existing is not None:
            if existing.topic_id is None:
                self._adopt(existing, topic_id)
            if existing.topic_id == topic_id:
                return existing
            logger.warning(
                "the folder %s is of an earlier topic of that name", existing.directory, extra=about(existing)
            )
            self.delete(topic, partition, now_ms)
        log_dir = choose_dir(
            f"{topic}-{partition}",
            self.dirs,
            self.cordoned,
            directory_id,
            is_new=is_new,
            may_begin_again=may_begin_again,
        )
        folder = log_dir.path / f"{topic}-{partition}"
        try:
            if read_partition_metadata(self._files, folder) not in (None, topic_id):
                # An earlier topic of that name is deleted, but the disk did not let its folder go.
                self._discard(log_dir, folder, topic, partition, now_ms)
            log = Log.open(
                folder,
                topic,
                partition,
                topic_id,
                config,
                now_ms=now_ms,
                health=log_dir.health,
                environment=self.environment,
            )
        except NotADirectoryError:
            # Somebody's mistake, which must not cost the other partitions their directory.
            raise storage_error(f"{folder} is in the way: it is no folder; remove it") from None
        except OSError as error:
            raise log_dir.health.refuse(error, f"cannot create {folder}") from error
        self._add(log, log_dir)
        return log

    def _adopt(self, log: Log, topic_id: bytes) -> None:
        """A folder whose topic id was lost, or was never written before a crash."""
        try:
            write_partition_metadata(self._files, log.directory, topic_id)
        except OSError as error:
            raise log.health.refuse(error, f"cannot write the topic id of {log.name}") from error
        log.topic_id = topic_id

    def _add(self, log: Log, log_dir: LogDir) -> None:
        key = (log.topic, log.partition)
        self._logs[key] = log
        self._dir_of[key] = log_dir
        log_dir.partition_count += 1

    def delete(self, topic: str, partition: int, now_ms: int) -> None:
        """Remove a partition: its folder is renamed at once and removed after `file.delete.delay.ms`."""
        log = self._retire(topic, partition, DELETE_SUFFIX)
        if log is not None:
            self.environment.deletions.add(log.directory, now_ms + log.config.file_delete_delay_ms)

    def set_aside(self, topic: str, partition: int) -> None:
        """Take a partition that the cluster does not know out of use. Its folder gets another name and stays:
        nobody but a person can say whether its content is still wanted.
        """
        log = self._retire(topic, partition, STRAY_SUFFIX)
        if log is not None:
            logger.warning("%s belongs to no topic; it is now %s", log.name, log.directory, extra=about(log))

    def _retire(self, topic: str, partition: int, suffix: str) -> Log | None:
        log = self._logs.pop((topic, partition), None)
        if log is None:
            return None
        self.cancel_move(log, now_ms=0)
        log_dir = self._dir_of.pop((topic, partition))
        log_dir.partition_count -= 1
        log.close(clean=False)
        log.renamed_to(self._rename(log_dir, log.directory, topic, partition, suffix))
        return log

    # ---- moving a log to another directory

    def begin_move(self, log: Log, target: LogDir) -> LogMove:
        """Begin to copy a log; whoever wants it moved asks for the pieces of work and then calls
        `finish_move`.
        """
        source = self.dir_of(log)
        folder = str(target.path / self._retired_name(log.topic, log.partition, FUTURE_SUFFIX))
        move = LogMove(log, source, target, folder)
        move.begin()
        self.moves[log.topic, log.partition] = move
        return move

    def cancel_move(self, log: Log, now_ms: int) -> None:
        """Give up a move; nothing happens when there is none."""
        move = self.moves.pop((log.topic, log.partition), None)
        if move is None:
            return
        move.cancelled = True
        if move.target.health.failure is None:
            try:
                self._discard(move.target, Path(move.folder), log.topic, log.partition, now_ms)
            except KafkaError as error:
                logger.error("cannot give up the copy of %s: %s", log.name, error, extra=about(log))

    def finish_move(self, move: LogMove, now_ms: int) -> Iterator[str]:
        """See `LogMove.finish`. The original is `settle_move`'s to take away."""
        log = move.log
        key = (log.topic, log.partition)
        starting = move.finish()
        yield next(starting)
        # The offset from which on the log may be read would otherwise be known to the former directory only.
        self._checkpoint_dir(move.target, sync=False, joining=log)
        yield "the directory knows the log's offsets"
        yield from starting
        self._dir_of[key] = move.target
        move.source.partition_count -= 1
        move.target.partition_count += 1
        self.moves.pop(key, None)

    def settle_move(self, move: LogMove, old_folder: str, due_ms: int) -> Iterator[str]:
        """See `LogMove.settle`."""
        log = move.log
        retired = str(move.source.path / self._retired_name(log.topic, log.partition, DELETE_SUFFIX))
        yield from move.settle(old_folder, retired)
        self.environment.deletions.add(retired, due_ms)

    # ---- checkpoints

    def check_dirs(self) -> None:
        """Take directories offline that are not there any more, or not the same."""
        for log_dir in self.dirs:
            log_dir.check_identity()

    def checkpoint(self, *, sync: bool = True) -> None:
        """Write recovery points and log start offsets of every directory."""
        self.check_dirs()
        for log_dir in self.dirs:
            self._checkpoint_dir(log_dir, sync)

    def _checkpoint_dir(self, log_dir: LogDir, sync: bool, joining: Log | None = None) -> bool:
        """False when it could not be written: what is there is of an earlier moment."""
        if log_dir.health.failure is not None:
            return False
        logs = [(key, log) for key, log in self._logs.items() if self._dir_of[key] is log_dir]
        if joining is not None:
            logs.append(((joining.topic, joining.partition), joining))
        # A flush in a thread may set the point while the log is being cut.
        points = {key: min(log.recovery_point, log.log_end_offset) for key, log in logs}
        # A start offset that the first segment's name tells needs no entry.
        starts = {key: start for key, log in logs if (start := log.log_start_offset) > log.segments.bases[0]}
        points_written = self._write(log_dir, RECOVERY_POINTS, points, sync)
        return self._write(log_dir, LOG_START_OFFSETS, starts, sync) and points_written

    def checkpoint_high_watermarks(self, offsets: Mapping[TopicPartition, int], *, sync: bool = True) -> None:
        """Write the high watermarks of the given partitions, each into its directory's checkpoint."""
        self.check_dirs()
        for log_dir in self.dirs:
            if log_dir.health.failure is None:
                mine = {key: offset for key, offset in offsets.items() if self._dir_of.get(key) is log_dir}
                self._write(log_dir, HIGH_WATERMARKS, mine, sync)

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """The high watermarks of the last checkpoint."""
        result: dict[TopicPartition, int] = {}
        for log_dir in self.dirs:
            result.update(log_dir.high_watermarks())
        return result

    def _write(self, log_dir: LogDir, name: str, offsets: Mapping[TopicPartition, int], sync: bool) -> bool:
        try:
            write_offsets(self._files, log_dir.path / name, offsets, sync=sync)
        except OSError as error:
            # A checkpoint that is too old costs a longer scan after a crash, no more.
            log_dir.health.refuse(error, f"cannot write {log_dir.path / name}")
            return False
        return True

    # ---- closing

    def close(self, *, broker_epoch: int = -1, clean: bool = True) -> None:
        """Close all logs; a clean close leaves checkpoints and a marker, so the next start need not scan."""
        if clean:
            failed = self._flush_all()
            for log_dir in self.dirs:
                # The marker makes the next start believe the checkpoint: an old one would cut the logs.
                if self._checkpoint_dir(log_dir, sync=True) and log_dir not in failed:
                    self._mark_clean(log_dir, broker_epoch)
        for log in self._logs.values():
            log.close(clean=False)
        self._logs.clear()
        self._dir_of.clear()
        self._release()

    def _mark_clean(self, log_dir: LogDir, broker_epoch: int) -> None:
        try:
            write_clean_shutdown(self._files, log_dir.path, broker_epoch)
        except OSError as error:
            about_it = about(folder=str(log_dir.path))
            logger.error("the next start will check the logs of %s: %s", log_dir.path, error, extra=about_it)

    def _flush_all(self) -> set[LogDir]:
        """Bring every log to disk; returns the directories in which that failed.

        In several threads, because a file system commits many fsyncs at once for the price of one.
        """
        failed: set[LogDir] = set()
        pending: list[tuple[Log, FlushWork, Future[None]]] = []
        with ThreadPoolExecutor(_FLUSH_THREADS) as pool:
            for key, log in self._logs.items():
                try:
                    work = None if log.offline else log.prepare_close()
                except (OSError, KafkaError) as error:
                    logger.error("cannot close %s: %s", log.name, error, extra=about(log))
                    failed.add(self._dir_of[key])
                    continue
                if work is not None:
                    pending.append((log, work, pool.submit(work.run)))
        for log, work, future in pending:
            problem = future.exception()
            if problem is None:
                log.flush_end(work)
            else:
                logger.error("cannot close %s: %s", log.name, problem, extra=about(log))
        return failed

    def _release(self) -> None:
        for log_dir in self.dirs:
            log_dir.release()
        self.dirs = []
