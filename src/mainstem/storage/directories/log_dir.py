"""One directory of `log.dirs`: its lock, its identity, its checkpoints and the partitions' folders in it."""

import logging
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from mainstem.logs import about
from mainstem.protocol.resources import TopicPartition
from mainstem.storage.directories.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from mainstem.storage.environment import DirectoryHealth
from mainstem.storage.errors import LogDirInUseError, LogDirInvalidError, LogDirUnusableError
from mainstem.storage.files.checkpoints import (
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    CheckpointError,
    read_offsets,
    sync_path,
    take_clean_shutdown,
)
from mainstem.storage.files.files import Files

logger = logging.getLogger(__name__)

LOCK_FILE = ".lock"
METADATA_TOPIC = "__cluster_metadata"
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"
_PARTITION_FOLDER = re.compile(r"([a-zA-Z0-9._-]{1,249})-(\d{1,10})")
_DELETED_FOLDER = re.compile(r".+\.[0-9a-f]{32}-delete")
_FUTURE_FOLDER = re.compile(r"([a-zA-Z0-9._-]{1,249})-(\d{1,10})\.[0-9a-f]{32}-future")
_STRAY_FOLDER = re.compile(r".+\.[0-9a-f]{32}-stray")


class LogDir:
    """A directory that this process has locked, or one that it cannot use."""

    __slots__ = ("_files", "_lock_fd", "broker_epoch", "clean", "health", "meta", "partition_count", "path")

    def __init__(self, files: Files, path: Path, unusable: str | None = None) -> None:
        """Make the directory if need be and lock it; LogDirInUseError or LogDirUnusableError if that fails.
        With the reason why it is `unusable` it is offline from the beginning, and nothing is touched.
        """
        self._files = files
        self.path = path
        self.health = DirectoryHealth(path)
        self.meta: MetaProperties | None = None
        self.clean = False
        self.broker_epoch = -1
        self.partition_count = 0
        self._lock_fd = -1
        if unusable is not None:
            self.health.fail(unusable)
        else:
            self._lock()

    @staticmethod
    def usable_or_offline(files: Files, path: Path) -> "LogDir":
        """The directory; offline where the file system refuses it."""
        try:
            return LogDir(files, path)
        except LogDirUnusableError as error:
            return LogDir(files, path, unusable=str(error))

    def _lock(self) -> None:
        path = self.path
        try:
            self._make()
            self._lock_fd = self._files.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise LogDirUnusableError(f"cannot use log directory {path}: {error.strerror}") from None
        try:
            self._files.lock(self._lock_fd)
        except OSError:
            self._files.close(self._lock_fd)
            raise LogDirInUseError(
                f"log directory {path} is in use by another broker; stop it or choose another (--data)"
            ) from None

    def _make(self) -> None:
        """Whatever is promised to be on disk in it needs the directory's own name to be there too."""
        new = [folder for folder in (self.path, *self.path.parents) if not self._files.exists(folder)]
        self._files.make_folders(self.path)
        for folder in new:
            sync_path(self._files, folder.parent)

    def release(self) -> None:
        """Unlock. The lock file stays, as Kafka's does not: somebody may hold it open already."""
        if self._lock_fd >= 0:
            self._files.close(self._lock_fd)

    def check_identity(self) -> None:
        """Take the directory offline when it is not the one that was locked: whatever is written to files
        that are open still would be in no directory at all.
        """
        if self.health.failure is not None:
            return
        try:
            there = self._files.stat(self.path / LOCK_FILE)
            locked = self._files.fstat(self._lock_fd)
        except OSError as error:
            self.health.fail(f"it is not there any more: {error.strerror}")
            return
        if (there.st_dev, there.st_ino) != (locked.st_dev, locked.st_ino):
            self.health.fail("another directory has taken its place")

    def identify(
        self, node_id: int, cluster_id: str | None, new_uuid: Callable[[], bytes], now_ms: int
    ) -> MetaProperties:
        """Read `meta.properties`, or write it for a new directory; another node's or cluster's is refused."""
        meta = read_meta_properties(self._files, self.path)
        if meta is None:
            if cluster_id is None:
                raise LogDirInvalidError(f"{self.path} has no meta.properties and no cluster id was given")
            meta = MetaProperties(cluster_id, node_id, new_uuid())
            write_meta_properties(self._files, self.path, meta, now_ms)
        if meta.node_id != node_id:
            raise LogDirInvalidError(
                f"log directory {self.path} belongs to node {meta.node_id}, this is node {node_id} (node.id)"
            )
        if cluster_id is not None and meta.cluster_id != cluster_id:
            raise LogDirInvalidError(
                f"log directory {self.path} belongs to cluster {meta.cluster_id}, not to {cluster_id}"
            )
        self.meta = meta
        return meta

    def take_clean_shutdown(self) -> None:
        """Find out whether the last stop was clean. The marker is gone from now on: this run may crash."""
        epoch = take_clean_shutdown(self._files, self.path)
        self.clean = epoch is not None
        if epoch is not None:
            self.broker_epoch = epoch

    def read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """One of the offset checkpoints. A damaged one counts as empty: the logs are then scanned."""
        if self.health.failure is not None:
            return {}
        try:
            return read_offsets(self._files, self.path / name)
        except CheckpointError as error:
            logger.warning("ignoring a damaged checkpoint: %s", error, extra=about(folder=str(self.path)))
            return {}

    def recovery_points(self) -> dict[TopicPartition, int]:
        return self.read_checkpoint(RECOVERY_POINTS)

    def log_start_offsets(self) -> dict[TopicPartition, int]:
        return self.read_checkpoint(LOG_START_OFFSETS)

    def high_watermarks(self) -> dict[TopicPartition, int]:
        return self.read_checkpoint(HIGH_WATERMARKS)

    def partition_folders(self) -> Iterator[tuple[str, int, Path]]:
        """`(topic, partition, folder)` of every partition here, the cluster metadata excepted."""
        for name in sorted(self._files.folders(self.path)):
            if match := _PARTITION_FOLDER.fullmatch(name):
                if match[1] != METADATA_TOPIC:
                    yield match[1], int(match[2]), self.path / name
            elif _STRAY_FOLDER.fullmatch(name):
                logger.warning(
                    "leaving %s alone: it is no partition's current folder",
                    self.path / name,
                    extra=about(folder=str(self.path / name)),
                )
            elif not (_DELETED_FOLDER.fullmatch(name) or _FUTURE_FOLDER.fullmatch(name)):
                logger.warning(
                    "ignoring %s, which is no partition's folder",
                    self.path / name,
                    extra=about(folder=str(self.path / name)),
                )

    def future_folders(self) -> list[tuple[str, int, Path]]:
        """`(topic, partition, folder)` of moves to this directory that were not finished."""
        names = sorted(self._files.folders(self.path))
        found = ((name, _FUTURE_FOLDER.fullmatch(name)) for name in names)
        return [(match[1], int(match[2]), self.path / name) for name, match in found if match]

    def deleted_folders(self) -> list[Path]:
        """Folders of deleted partitions that are still to be removed."""
        return [
            self.path / name for name in self._files.folders(self.path) if _DELETED_FOLDER.fullmatch(name)
        ]


def retired_folder_name(topic: str, partition: int, unique: str, suffix: str) -> str:
    """The name of a folder that is no partition's any more; long topic names are cut to what a file system
    takes.
    """
    suffix = f"-{partition}.{unique}{suffix}"
    return topic[: 255 - len(suffix)] + suffix
