"""All logs of a node, over one or more directories: loading, creating, deleting, checkpoints.

It decides where a log lies and when its files go; what is in a log is the log's own business. Nothing here
runs by itself: the broker calls it with the time.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from random import Random

from mainstem.config import LogConfig
from mainstem.protocol.errors import KafkaError
from mainstem.protocol.uuids import random_uuid
from mainstem.storage.checkpoints import (
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    TopicPartition,
    write_clean_shutdown,
    write_offsets,
    write_partition_metadata,
)
from mainstem.storage.environment import (
    DEFAULT_OPEN_FILES_MAX,
    DEFAULT_PRODUCER_ID_EXPIRATION_MS,
    LogEnvironment,
)
from mainstem.storage.errors import LogDirInvalidError, storage_error
from mainstem.storage.flush import FlushWork
from mainstem.storage.log import Log
from mainstem.storage.log_dir import DELETE_SUFFIX, STRAY_SUFFIX, LogDir, retired_folder_name
from mainstem.storage.meta_properties import MetaProperties

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
        open_files_max: int = DEFAULT_OPEN_FILES_MAX,
        producer_id_expiration_ms: int = DEFAULT_PRODUCER_ID_EXPIRATION_MS,
        random: Random | None = None,
        new_uuid: Callable[[], bytes] = random_uuid,
    ) -> None:
        """Lock and identify the directories. A new one needs a cluster id, given or from another one."""
        self.environment = LogEnvironment(
            open_files_max=open_files_max, producer_id_expiration_ms=producer_id_expiration_ms, random=random
        )
        self._new_uuid = new_uuid
        self._logs: dict[TopicPartition, Log] = {}
        self._dir_of: dict[TopicPartition, LogDir] = {}
        self.dirs: list[LogDir] = []
        try:
            for path in log_dirs:
                self.dirs.append(LogDir(Path(path)))
            self.meta = self._identify(node_id, cluster_id, now_ms)
        except BaseException:
            self._release()
            raise
        for log_dir in self.dirs:
            log_dir.take_clean_shutdown()

    def _identify(self, node_id: int, cluster_id: str | None, now_ms: int) -> MetaProperties:
        known = [log_dir for log_dir in self.dirs if (log_dir.path / "meta.properties").exists()]
        for log_dir in known:
            cluster_id = log_dir.identify(node_id, cluster_id, self._new_uuid, now_ms).cluster_id
        for log_dir in self.dirs:
            if log_dir not in known:
                log_dir.identify(node_id, cluster_id, self._new_uuid, now_ms)
        meta = self.dirs[0].meta if self.dirs else None
        if meta is None:
            raise LogDirInvalidError("no log directory was given (log.dirs)")
        return meta

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
    def was_clean(self) -> bool:
        """Whether every directory was closed well before this run."""
        return all(log_dir.clean for log_dir in self.dirs)

    # ---- loading, creating, deleting

    def load(self, config_of: Callable[[str], LogConfig], now_ms: int) -> None:
        """Open the logs of all directories; after a crash, those with a tail to check are recovered.

        A directory that cannot be read goes offline and leaves the others alone.
        """
        for log_dir in self.dirs:
            try:
                self._load_dir(log_dir, config_of, now_ms)
            except OSError as error:
                log_dir.health.fail(f"cannot load its logs: {error}")

    def _load_dir(self, log_dir: LogDir, config_of: Callable[[str], LogConfig], now_ms: int) -> None:
        for folder in log_dir.deleted_folders():
            self.environment.deletions.add(str(folder), now_ms)
        recovery_points = log_dir.recovery_points()
        log_start_offsets = log_dir.log_start_offsets()
        for topic, partition, folder in log_dir.partition_folders():
            key = (topic, partition)
            if key in self._logs:
                raise LogDirInvalidError(
                    f"partition {topic}-{partition} is in {self._dir_of[key].path} and {log_dir.path}"
                )
            log = Log.open(
                folder,
                topic,
                partition,
                None,
                config_of(topic),
                now_ms=now_ms,
                clean=log_dir.clean and key in recovery_points,
                recovery_point=recovery_points.get(key, 0),
                log_start_offset=log_start_offsets.get(key, 0),
                health=log_dir.health,
                environment=self.environment,
            )
            self._add(log, log_dir)

    def create(self, topic: str, partition: int, topic_id: bytes, config: LogConfig, now_ms: int) -> Log:
        """The log of this partition, made in the directory with the fewest partitions if it is not there."""
        existing = self._logs.get((topic, partition))
        if existing is not None:
            if existing.topic_id is None:
                self._adopt(existing, topic_id)
            if existing.topic_id == topic_id:
                return existing
            logger.warning("the folder %s is of an earlier topic of that name", existing.directory)
            self.delete(topic, partition, now_ms)
        online = [log_dir for log_dir in self.dirs if log_dir.health.failure is None]
        if not online:
            raise storage_error(
                "every log directory is offline; look into the log of the broker for the reason"
            )
        self._refuse_if_offline(f"{topic}-{partition}")
        log_dir = min(online, key=lambda candidate: candidate.partition_count)
        folder = log_dir.path / f"{topic}-{partition}"
        try:
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
        except OSError as error:
            raise log_dir.health.refuse(error, f"cannot create {folder}") from error
        self._add(log, log_dir)
        return log

    def _refuse_if_offline(self, name: str) -> None:
        """A partition that lies in an offline directory must not begin again, empty, in another one."""
        for log_dir in self.dirs:
            if log_dir.health.failure is not None:
                try:
                    os.stat(log_dir.path / name)
                except FileNotFoundError:
                    continue
                except OSError:
                    pass  # nobody can say whether it is there
                raise storage_error(f"{name} is in log directory {log_dir.path}, which is offline")

    def _adopt(self, log: Log, topic_id: bytes) -> None:
        """A folder whose topic id was lost, or was never written before a crash."""
        try:
            write_partition_metadata(log.directory, topic_id)
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
            logger.warning("%s-%d belongs to no topic; its folder is now %s", topic, partition, log.directory)

    def _retire(self, topic: str, partition: int, suffix: str) -> Log | None:
        log = self._logs.pop((topic, partition), None)
        if log is None:
            return None
        log_dir = self._dir_of.pop((topic, partition))
        log_dir.partition_count -= 1
        log.close(clean=False)
        target = str(log_dir.path / retired_folder_name(topic, partition, self._new_uuid().hex(), suffix))
        try:
            os.rename(log.directory, target)
        except OSError as error:
            raise log_dir.health.refuse(error, f"cannot rename {log.directory}") from error
        log.moved_to(target)
        return log

    # ---- checkpoints

    def checkpoint(self, *, sync: bool = True) -> None:
        """Write recovery points and log start offsets of every directory."""
        for log_dir in self.dirs:
            self._checkpoint_dir(log_dir, sync)

    def _checkpoint_dir(self, log_dir: LogDir, sync: bool) -> bool:
        """False when it could not be written: what is there is of an earlier moment."""
        if log_dir.health.failure is not None:
            return False
        logs = [(key, log) for key, log in self._logs.items() if self._dir_of[key] is log_dir]
        # A flush in a thread may set the point while the log is being cut.
        points = {key: min(log.recovery_point, log.log_end_offset) for key, log in logs}
        # A start offset that the first segment's name tells needs no entry.
        starts = {key: log.log_start_offset for key, log in logs if log.log_start_offset > log.bases[0]}
        points_written = self._write(log_dir, RECOVERY_POINTS, points, sync)
        return self._write(log_dir, LOG_START_OFFSETS, starts, sync) and points_written

    def checkpoint_high_watermarks(self, offsets: Mapping[TopicPartition, int], *, sync: bool = True) -> None:
        """Write the high watermarks of the given partitions, each into its directory's checkpoint."""
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
            write_offsets(log_dir.path / name, offsets, sync=sync)
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
            write_clean_shutdown(log_dir.path, broker_epoch)
        except OSError as error:
            logger.error("the next start will check the logs of %s: %s", log_dir.path, error)

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
                    logger.error("cannot close %s: %s", log.name, error)
                    failed.add(self._dir_of[key])
                    continue
                if work is not None:
                    pending.append((log, work, pool.submit(work.run)))
        for log, work, future in pending:
            problem = future.exception()
            if problem is None:
                log.flush_end(work)
            else:
                logger.error("cannot close %s: %s", log.name, problem)
        return failed

    def _release(self) -> None:
        for log_dir in self.dirs:
            log_dir.release()
        self.dirs = []
