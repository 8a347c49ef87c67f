"""What every role of a node stands on: its clock, randomness, child processes and disk, its settings, its log
directories and the metadata.

Nobody reaches around it for any of these, so that a test or a simulation can hand in its own. Timers, tasks
and threads are the event loop's, which is handed in like the rest.
"""

import asyncio
import logging
import os
import resource
from collections.abc import Sequence
from pathlib import Path

from mainstem.broker.clock import Clock
from mainstem.broker.configuration import Configuration
from mainstem.broker.errors import StartupError
from mainstem.broker.metadata.cache import MetadataCache
from mainstem.broker.metadata.controller_client import ControllerClient
from mainstem.broker.metadata.loader import MetadataLoader
from mainstem.broker.metadata.log import MetadataLog
from mainstem.broker.metadata.opening import MetadataLogError
from mainstem.broker.processes import Processes
from mainstem.broker.randomness import Randomness
from mainstem.broker.turns import Turns
from mainstem.cluster.image import MetadataImage
from mainstem.config import BrokerConfig, topic_log_config
from mainstem.protocol.errors import KafkaError
from mainstem.protocol.uuids import uuid_to_text
from mainstem.storage.directories.log_manager import LogManager
from mainstem.storage.errors import LogDirInUseError, LogDirInvalidError
from mainstem.storage.files.files import Files
from mainstem.storage.files.real_files import RealFiles

logger = logging.getLogger(__name__)

_HANDLES_FOR_LOGS = 0.5  # the share of the open files limit that segments may keep; connections need the rest


class SharedServer:
    """Made with the node; what lies on disk is there once it is opened."""

    controller: ControllerClient

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        processes: Processes | None = None,
        files: Files | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self.randomness = randomness or Randomness()
        self.processes = processes or Processes()
        self.files = files or RealFiles()
        self.node_id: int = config.get("node.id")
        self.configuration = Configuration(self.node_id, config)
        self.metadata_cache = MetadataCache(MetadataImage())
        # Set when no log directory is left; whoever runs the node should end it.
        self.dead = asyncio.Event()
        self.loop: asyncio.AbstractEventLoop
        self.turns: Turns
        self._log_manager: LogManager | None = None
        self._metadata_log: MetadataLog | None = None
        self._loader: MetadataLoader | None = None

    @property
    def config(self) -> BrokerConfig:
        """The settings that are in force."""
        return self.configuration.current

    @property
    def image(self) -> MetadataImage:
        """The newest metadata that this node has applied."""
        return self.metadata_cache.image

    @property
    def log_manager(self) -> LogManager:
        assert self._log_manager is not None, "the node is not started"
        return self._log_manager

    @property
    def metadata_log(self) -> MetadataLog:
        assert self._metadata_log is not None, "the node is not started"
        return self._metadata_log

    @property
    def loader(self) -> MetadataLoader:
        assert self._loader is not None, "the node is not started"
        return self._loader

    @property
    def is_open(self) -> bool:
        """Whether the log directories are."""
        return self._log_manager is not None

    def open(self) -> None:
        """Open the log directories, and replay the metadata; StartupError when that cannot be."""
        self._log_manager = self._open_log_dirs()
        self._metadata_log = self._open_metadata_log()
        self._loader = MetadataLoader(self.loop, self._metadata_log)

    def _open_log_dirs(self) -> LogManager:
        paths = [Path(directory) for directory in self.config.log_dirs()]
        _check_distinct(self.config.log_dirs())
        try:
            is_new = not any(self.files.exists(path / "meta.properties") for path in paths)
            return LogManager(
                paths,
                node_id=self.node_id,
                now_ms=self.clock.now_ms(),
                cluster_id=uuid_to_text(self.randomness.uuid()) if is_new else None,
                files=self.files,
                open_files_max=max(64, int(_raise_open_files_limit() * _HANDLES_FOR_LOGS)),
                producer_id_expiration_ms=self.config.get("producer.id.expiration.ms"),
                new_uuid=self.randomness.uuid,
            )
        except (LogDirInUseError, LogDirInvalidError) as error:
            raise StartupError(str(error)) from error
        except OSError as error:
            raise StartupError(
                f"cannot use the data directory {paths[0]}: {error.strerror or error}"
            ) from error

    def _open_metadata_log(self) -> MetadataLog:
        meta = self.log_manager.meta
        directory = Path(self.config.get("metadata.log.dir") or self.config.log_dirs()[0])
        health = {log_dir.path: log_dir.health for log_dir in self.log_manager.dirs}.get(directory)
        if health is not None and health.failure is not None:
            raise StartupError(f"the metadata log cannot be read: {health.failure}")
        try:
            return MetadataLog.open(
                directory,
                node_id=self.node_id,
                directory_id=meta.directory_id,
                cluster_id=meta.cluster_id,
                config=self.config,
                now_ms=self.clock.now_ms,
                health=health,
                files=self.files,
            )
        except (KafkaError, MetadataLogError) as error:
            raise StartupError(str(error)) from error

    def load_logs(self, image: MetadataImage) -> None:
        """Open the logs of the topics that the image knows; StartupError when no directory can be used."""
        try:
            topics = image.topics_by_name
            self.log_manager.load(
                lambda topic: topic_log_config(self.config, image.topic_config(topic)),
                self.clock.now_ms(),
                lambda topic: found.topic_id if (found := topics.get(topic)) is not None else None,
            )
            failures = [entry.health.failure for entry in self.log_manager.dirs]
            if failures[0] is not None and all(failures):
                raise StartupError(f"no log directory can be used: {failures[0]}")
        except LogDirInvalidError as error:
            raise StartupError(str(error)) from error
        except OSError as error:
            where = error.filename or self.config.log_dirs()[0]
            raise StartupError(f"cannot load the logs: {where}: {error.strerror or error}") from error
        except KafkaError as error:
            raise StartupError(f"cannot load the logs: {error.message}") from error

    # ---- stopping

    async def stop_publishing(self) -> None:
        """Leave the metadata as it is applied now."""
        if self._loader is not None:
            await self._loader.stop()
            self._loader = None

    async def close_metadata(self) -> None:
        if self._metadata_log is not None:
            await self._metadata_log.stop()
            self._metadata_log = None

    def closed(self) -> None:
        """The log directories are let go of."""
        self._log_manager = None


def _check_distinct(directories: Sequence[str]) -> None:
    """Refuse one directory under two names: locking it again would blame another broker."""
    known: dict[object, str] = {}
    for directory in directories:
        identities: list[object] = [os.path.realpath(directory)]
        try:
            status = os.stat(directory)
            identities.append((status.st_dev, status.st_ino))
        except OSError:
            pass  # it is not there yet
        for identity in identities:
            other = known.setdefault(identity, directory)
            if other != directory:
                raise StartupError(
                    f"log.dirs: {other} and {directory} are the same directory; leave one of them out"
                )


def _raise_open_files_limit() -> int:
    """Lift the soft limit of open files to the hard one, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError) as error:
            logger.warning("cannot raise the limit of open files above %d: %s", soft, error)
    return soft
