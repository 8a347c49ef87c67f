"""What every role of a node stands on: its clock, randomness, child processes and disk, its settings, its
listeners, its log directories, the metadata, and the ways to other nodes.

Nobody reaches around it for any of these, so that a test or a simulation can hand in its own. Timers, tasks
and threads are the event loop's, which is handed in like the rest.
"""

import asyncio
import logging
import os
import resource
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mainstem.broker.clock import Clock
from mainstem.broker.configuration import Configuration
from mainstem.broker.errors import MetadataLogError, StartupError
from mainstem.broker.metadata.cache import MetadataCache
from mainstem.broker.metadata.controller_client import ControllerClient
from mainstem.broker.metadata.loader import MetadataLoader
from mainstem.broker.metadata.log import MetadataLog
from mainstem.broker.metadata.metadata_directory import check_kept, metadata_directory, own_identity
from mainstem.broker.metadata.opening import open_metadata_log
from mainstem.broker.network.listener import BoundListener
from mainstem.broker.network.network import Network
from mainstem.broker.network.throttle import Throttle
from mainstem.broker.processes import Processes
from mainstem.broker.quorum.driver import QuorumDriver
from mainstem.broker.randomness import Randomness
from mainstem.broker.requests.dispatch import Dispatcher
from mainstem.broker.turns import Turns
from mainstem.cluster.image import MetadataImage
from mainstem.config import BrokerConfig, ConfigError, parse_listeners, topic_log_config
from mainstem.config.quorum import quorum_settings
from mainstem.protocol.errors import KafkaError
from mainstem.protocol.uuids import uuid_to_text
from mainstem.security.authorizer import AllowAll, Authorizer
from mainstem.storage.directories.log_manager import LogManager
from mainstem.storage.errors import LogDirInUseError, LogDirInvalidError
from mainstem.storage.files.files import Files
from mainstem.storage.files.real_files import RealFiles

if TYPE_CHECKING:
    from mainstem.broker.broker_role import BrokerRole
    from mainstem.broker.controller_role import ControllerRole
    from mainstem.broker.monitoring.monitor import Monitor
    from mainstem.broker.network.peer_pool import PeerPool
    from mainstem.broker.network.peers import PeerConnection

logger = logging.getLogger(__name__)

_HANDLES_FOR_LOGS = 0.5  # the share of the open files limit that segments may keep; connections need the rest


class SharedServer:
    """Made with the node; what lies on disk is there once it is opened."""

    dispatcher: Dispatcher
    network: Network
    # How to ask the active controller, wherever it is.
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
        self.authorizer: Authorizer = AllowAll()
        self.throttle = Throttle()
        # The roles that this node has.
        self.broker: BrokerRole | None = None
        self.controller_role: ControllerRole | None = None
        self.monitor: Monitor | None = None  # without a metrics port there is none
        self.bound_listeners: list[BoundListener] = []
        # Set when no log directory is left; whoever runs the node should end it.
        self.dead = asyncio.Event()
        self.loop: asyncio.AbstractEventLoop
        self.turns: Turns
        self._log_manager: LogManager | None = None
        self._metadata_log: MetadataLog | None = None
        self._loader: MetadataLoader | None = None
        self._peers: PeerPool | None = None
        self._has_ports = False

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
    def quorum(self) -> QuorumDriver:
        return self.metadata_log.quorum

    @property
    def loader(self) -> MetadataLoader:
        assert self._loader is not None, "the node is not started"
        return self._loader

    @property
    def is_open(self) -> bool:
        """Whether the log directories are."""
        return self._log_manager is not None

    @property
    def cluster_id(self) -> str:
        return self.log_manager.meta.cluster_id

    @property
    def is_active_controller(self) -> bool:
        """Whether this node decides on the metadata."""
        return self.controller_role is not None and self.quorum.is_active

    @property
    def stands_alone(self) -> bool:
        """Whether this node is the whole cluster: there is no other voter, and no other broker is known."""
        return self.is_active_controller and self.metadata_log.pending_image.brokers.keys() <= {self.node_id}

    @property
    def client_listeners(self) -> list[BoundListener]:
        """Those that serve clients, and brokers among themselves."""
        return [bound for bound in self.bound_listeners if not bound.is_controller]

    # ---- starting

    async def bind(self) -> None:
        """Take the ports, so that a taken one is found before anything else happens. StartupError then."""
        await self._start_monitor()
        self.dispatcher = Dispatcher(self, self.monitor.meters if self.monitor else None)
        self.network = Network(self.loop, self.turns, self.clock, self.config, self.dispatcher)
        self._has_ports = True
        try:
            listeners = parse_listeners(self.config, socket.gethostname())
        except ConfigError as error:
            raise StartupError(error.message) from None
        is_controller = "controller" in self.config.get("process.roles")
        self.bound_listeners = self.network.bind(
            [listener for listener in listeners if is_controller or not listener.is_controller]
        )

    async def _start_monitor(self) -> None:
        port = self.config.get("mainstem.metrics.port")
        if port >= 0:
            from mainstem.broker.monitoring.monitor import Monitor  # only for those who want it

            self.monitor = Monitor(self, self.config.get("mainstem.metrics.host"), port)
            await self.monitor.start()

    def open(self) -> None:
        """Open the log directories, and replay the metadata; StartupError when that cannot be."""
        self._log_manager = self._open_log_dirs()
        self._metadata_log = self._open_metadata_log()
        self._loader = MetadataLoader(self.loop, self._metadata_log)
        self.controller = ControllerClient(self)

    def _open_log_dirs(self) -> LogManager:
        paths = [Path(directory) for directory in self.config.log_dirs()]
        _check_distinct(self.config.log_dirs())
        try:
            metadata_dir = metadata_directory(self.config)
            is_new = not any(self.files.exists(path / "meta.properties") for path in (*paths, metadata_dir))
            if is_new:
                self._check_may_format()
            else:
                check_kept(self.files, metadata_dir, paths)
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

    def _check_may_format(self) -> None:
        """A node that belongs to others must be told which cluster that is."""
        settings = quorum_settings(self.config)
        if not settings.stands_alone(parse_listeners(self.config)):
            raise StartupError(
                f"{self.config.log_dirs()[0]} is not formatted, and the settings of node {self.node_id} name "
                "other controllers; run mainstem storage format --cluster-id ID --config FILE"
            )

    def _open_metadata_log(self) -> MetadataLog:
        directory = metadata_directory(self.config)
        log_dir = next((found for found in self.log_manager.dirs if found.path == directory), None)
        if log_dir is not None and log_dir.health.failure is not None:
            raise StartupError(f"the metadata log cannot be read: {log_dir.health.failure}")
        try:
            meta = None if log_dir is None else log_dir.meta
            if meta is None:
                meta = own_identity(
                    self.files, directory, self.log_manager.meta, self.randomness.uuid, self.clock.now_ms()
                )
            return open_metadata_log(
                directory,
                node_id=self.node_id,
                directory_id=meta.directory_id,
                cluster_id=meta.cluster_id,
                config=self.config,
                now_ms=self.clock.now_ms,
                steady_ms=self.clock.steady_ms,
                voter_endpoints=[
                    (bound.name, bound.advertised_host, bound.advertised_port)
                    for bound in self.bound_listeners
                    if bound.is_controller
                ],
                health=None if log_dir is None else log_dir.health,
                files=self.files,
                randomness=self.randomness,
                on_fatal=self._quorum_failed,
            )
        except (KafkaError, MetadataLogError, LogDirInvalidError) as error:
            raise StartupError(str(error)) from error
        except OSError as error:
            raise StartupError(f"cannot use {directory}: {error.strerror or error}") from error

    def _quorum_failed(self, reason: str) -> None:
        """Without the metadata log this node knows nothing that is sure."""
        logger.critical("the node stops: %s", reason)
        self.dead.set()

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

    # ---- other brokers

    def broker_address(self, node_id: int) -> tuple[str, int]:
        """Where other brokers reach this one; KafkaError with BROKER_NOT_AVAILABLE when nobody knows."""
        return self._peer_pool.address(node_id)

    def peer(self, node_id: int) -> "PeerConnection":
        """The connection to another broker for what is asked now and then; KafkaError with
        BROKER_NOT_AVAILABLE when nobody knows where it is. It is only to be used at once: the next one may be
        another.
        """
        return self._peer_pool.peer(node_id)

    @property
    def _peer_pool(self) -> "PeerPool":
        if self._peers is None:
            from mainstem.broker.network.peer_pool import PeerPool  # only in a cluster

            self._peers = PeerPool(self)
        return self._peers

    # ---- stopping

    def stop_serving(self) -> None:
        """Close the connections, those to other nodes too."""
        if self.monitor is not None:
            self.monitor.stopping()
        if self._peers is not None:
            self._peers.close()
            self._peers = None
        if self._has_ports:
            self._has_ports = False
            self.network.close()
            self.turns.close()
            self.dispatcher.close()

    async def stop_publishing(self) -> None:
        """Leave the metadata as it is applied now."""
        if self._loader is not None:
            await self._loader.stop()
            self._loader = None

    async def close_metadata(self) -> None:
        if self._metadata_log is not None:
            self.controller.close()
            await self._metadata_log.stop()
            self._metadata_log = None

    def close_logs(self, *, broker_epoch: int, clean: bool) -> None:
        """Let go of the log directories."""
        if self._log_manager is not None:
            self._log_manager.close(broker_epoch=broker_epoch, clean=clean)
            self._log_manager = None

    def close(self) -> None:
        """The last thing: until then the node's health can be asked for."""
        if self.monitor is not None:
            self.monitor.close()
            self.monitor = None


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
