"""A node: everything that one broker process owns, put together, started and stopped.

No state lives outside of a Node, so that several can live in one process. It holds the parts and wires
them; what they decide and do is theirs.
"""

import asyncio
import logging
import os
import resource
import socket
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mainstem.broker.clock import Clock
from mainstem.broker.configuration import Configuration
from mainstem.broker.coordination.node_coordinators import NodeCoordinators
from mainstem.broker.errors import StartupError
from mainstem.broker.logs.index_repairs import IndexRepairs
from mainstem.broker.logs.log_cleaner import LogCleaner
from mainstem.broker.logs.log_dir_moves import LogDirMoves
from mainstem.broker.logs.maintenance import Maintenance
from mainstem.broker.logs.partition import Partition
from mainstem.broker.logs.replicas import Replicas
from mainstem.broker.metadata.cache import MetadataCache
from mainstem.broker.metadata.controller_shell import ControllerShell
from mainstem.broker.metadata.loader import MetadataLoader
from mainstem.broker.metadata.log import MetadataLog
from mainstem.broker.metadata.log_dir_assignments import LogDirAssignments
from mainstem.broker.metadata.opening import MetadataLogError
from mainstem.broker.metadata.producer_ids import ProducerIds
from mainstem.broker.network.listener import BoundListener
from mainstem.broker.network.network import Network
from mainstem.broker.network.self_check import check_advertised
from mainstem.broker.network.throttle import Throttle
from mainstem.broker.requests.dispatch import Dispatcher
from mainstem.broker.requests.fetch_session import FetchSessionCache
from mainstem.broker.requests.heavy_batches import HeavyBatches
from mainstem.cluster.controller import Controller
from mainstem.cluster.features import SUPPORTED_FEATURES
from mainstem.cluster.image import Endpoint, MetadataImage
from mainstem.cluster.registration import BrokerRegistration
from mainstem.config import BrokerConfig, ConfigError, parse_listeners, topic_log_config
from mainstem.protocol.apis.k19_create_topics import CreatableTopic, CreateTopicsRequest
from mainstem.protocol.errors import KafkaError
from mainstem.protocol.uuids import random_uuid, uuid_to_text
from mainstem.security.authorizer import AllowAll, Authorizer
from mainstem.storage.directories.log_manager import LogManager
from mainstem.storage.environment import DirectoryHealth
from mainstem.storage.errors import LogDirInUseError, LogDirInvalidError

if TYPE_CHECKING:
    from mainstem.broker.coordination.groups import GroupCoordinators
    from mainstem.broker.coordination.transactions import TransactionCoordinators
    from mainstem.broker.monitoring.monitor import Monitor

logger = logging.getLogger(__name__)

_HANDLES_FOR_LOGS = 0.5  # the share of the open files limit that segments may keep; connections need the rest


class BrokerEndpoint(NamedTuple):
    """Where a client reaches a broker through the listener it asked on."""

    node_id: int
    host: str
    port: int
    rack: str | None


class Node:
    """One broker. Make it, `await start()`, and `await stop()` in the end, in one event loop."""

    def __init__(self, config: BrokerConfig, *, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.node_id: int = config.get("node.id")
        self.configuration = Configuration(self.node_id, config, self._reconfigured)
        self.authorizer: Authorizer = AllowAll()
        self.throttle = Throttle()
        self.bound_listeners: list[BoundListener] = []
        self.metadata_cache = MetadataCache(MetadataImage())
        self.supported_features = {
            name: (levels.first, levels.last) for name, levels in SUPPORTED_FEATURES.items()
        }
        self.fetch_sessions = FetchSessionCache(
            config.get("max.incremental.fetch.session.cache.slots"), eviction_ms=120_000
        )
        self.fetch_bytes_max: int = config.get("fetch.max.bytes")
        self._network: Network | None = None
        self._log_manager: LogManager | None = None
        self._metadata_log: MetadataLog | None = None
        self._loader: MetadataLoader | None = None
        self.coordinators = NodeCoordinators(self)
        self._maintenance: Maintenance | None = None
        self._index_repairs: IndexRepairs | None = None
        self._log_dir_moves: LogDirMoves | None = None
        self.monitor: Monitor | None = None  # without a metrics port there is none
        self.log_dir_assignments = LogDirAssignments(self)
        # Set when no log directory is left; whoever runs the node should end it.
        self.dead = asyncio.Event()
        self._self_check: asyncio.Task[list[str]] | None = None
        self._broker_epoch = -1

    @property
    def log_manager(self) -> LogManager:
        assert self._log_manager is not None, "the node is not started"
        return self._log_manager

    @property
    def cleaner(self) -> LogCleaner:
        assert self._maintenance is not None, "the node is not started"
        return self._maintenance.cleaner

    @property
    def log_dir_moves(self) -> LogDirMoves:
        assert self._log_dir_moves is not None, "the node is not started"
        return self._log_dir_moves

    @property
    def config(self) -> BrokerConfig:
        """The settings that are in force."""
        return self.configuration.current

    @property
    def image(self) -> MetadataImage:
        """The newest metadata that this node has applied."""
        return self.metadata_cache.image

    @property
    def groups(self) -> "GroupCoordinators":
        """The group coordinators, which are loaded when the first group asks for one."""
        return self.coordinators.groups

    @property
    def transactions(self) -> "TransactionCoordinators":
        """The transaction coordinators, which are loaded when the first transaction asks for one."""
        return self.coordinators.transactions

    @property
    def cluster_id(self) -> str:
        return self.log_manager.meta.cluster_id

    # ---- starting

    async def start(self) -> None:
        """Open the data directories, become the controller, load the logs, and serve. StartupError if it
        cannot.
        """
        self.loop = asyncio.get_running_loop()
        try:
            await self._start()
        except BaseException:
            await self.stop(clean=False)
            raise

    async def _start(self) -> None:
        await self._start_monitor()
        self._dispatcher = Dispatcher(self, self.loop, self.monitor.meters if self.monitor else None)
        self._network = Network(self.loop, self.config, self._dispatcher)
        self.heavy_batches = HeavyBatches(self.loop, self._network.request_memory)
        try:
            listeners = parse_listeners(self.config, socket.gethostname())
        except ConfigError as error:
            raise StartupError(error.message) from None
        # Binding comes first: a taken port is found before anything on disk is touched.
        self.bound_listeners = self._network.bind([entry for entry in listeners if not entry.is_controller])
        self._log_manager = self._open_log_dirs()
        self._index_repairs = IndexRepairs(self.loop)
        self._log_manager.environment.repair_index = self._index_repairs.ask
        self._log_manager.environment.fsyncs = self.monitor.meters.fsyncs if self.monitor else None
        for log_dir in self._log_manager.dirs:
            log_dir.health.on_failure = partial(self._directory_failed, log_dir.health)
        self._metadata_log = self._open_metadata_log()
        self._loader = MetadataLoader(self.loop, self._metadata_log)
        self.controller = ControllerShell(
            Controller(self.node_id, self.config, random_uuid, self._newest_image),
            self._metadata_log,
            self._loader,
        )
        self.producer_ids = ProducerIds(self._allocate_producer_ids)
        await self._register()
        image = self.metadata_cache.image = self._metadata_log.image
        self.replicas = Replicas(
            self.loop,
            self.node_id,
            self._log_manager,
            self.clock,
            image,
            lambda: self.config,
            self._partition_returned,
        )
        self.configuration.take(image)
        self._load_logs(image)
        # In this order: logs are made with the settings of the moment. A topic is in sight, and remembered
        # answers are forgotten, when its logs are made. Coordinators look for both.
        await self._loader.begin(
            (
                self.configuration,
                self.replicas,
                self.metadata_cache,
                self.coordinators,
                self.log_dir_assignments,
            )
        )
        self._maintenance = Maintenance(self)
        self._maintenance.start()
        self._log_dir_moves = LogDirMoves(self)
        self._log_dir_moves.resume()
        self._network.start()
        if self.monitor is not None:
            self.monitor.serving(self._network)
        self._self_check = self.loop.create_task(check_advertised(self.bound_listeners))

    async def _start_monitor(self) -> None:
        port = self.config.get("mainstem.metrics.port")
        if port >= 0:
            from mainstem.broker.monitoring.monitor import Monitor  # only for those who want it

            self.monitor = Monitor(self, self.config.get("mainstem.metrics.host"), port)
            await self.monitor.start()

    def _open_log_dirs(self) -> LogManager:
        paths = [Path(directory) for directory in self.config.log_dirs()]
        _check_distinct(self.config.log_dirs())
        try:
            is_new = not any((path / "meta.properties").exists() for path in paths)
            return LogManager(
                paths,
                node_id=self.node_id,
                now_ms=self.clock.now_ms(),
                cluster_id=uuid_to_text(random_uuid()) if is_new else None,
                open_files_max=max(64, int(_raise_open_files_limit() * _HANDLES_FOR_LOGS)),
                producer_id_expiration_ms=self.config.get("producer.id.expiration.ms"),
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
            )
        except (KafkaError, MetadataLogError) as error:
            raise StartupError(str(error)) from error

    def _newest_image(self) -> MetadataImage:
        assert self._metadata_log is not None
        return self._metadata_log.pending_image

    async def _register(self) -> None:
        """Each start is a new incarnation; the leader epochs of all partitions are bumped with it."""
        registration = BrokerRegistration(
            broker_id=self.node_id,
            incarnation_id=random_uuid(),
            endpoints=[
                Endpoint(bound.name, bound.advertised_host, bound.advertised_port)
                for bound in self.bound_listeners
            ],
            log_dirs=[
                entry.meta.directory_id for entry in self.log_manager.online_dirs if entry.meta is not None
            ],
            rack=self.config.get("broker.rack"),
        )
        try:
            self._broker_epoch = await self.controller.submit(
                lambda controller: controller.register_broker(registration)
            )
        except KafkaError as error:
            raise StartupError(f"cannot write the metadata log: {error.message}") from error

    def _load_logs(self, image: MetadataImage) -> None:
        try:
            self.log_manager.load(
                lambda topic: topic_log_config(self.config, image.topic_config(topic)), self.clock.now_ms()
            )
            failures = [entry.health.failure for entry in self.log_manager.dirs]
            if failures[0] is not None and all(failures):
                raise StartupError(f"no log directory can be used: {failures[0]}")
            self._set_strays_aside(image)
        except LogDirInvalidError as error:
            raise StartupError(str(error)) from error
        except OSError as error:
            where = error.filename or self.config.log_dirs()[0]
            raise StartupError(f"cannot load the logs: {where}: {error.strerror or error}") from error
        except KafkaError as error:
            raise StartupError(f"cannot load the logs: {error.message}") from error

    def _set_strays_aside(self, image: MetadataImage) -> None:
        """Folders of topics that the cluster does not know: deleted while the node was down or crashed, or
        copied from elsewhere.
        """
        for log in self.log_manager:
            topic = image.topics_by_name.get(log.topic)
            if (
                topic is None
                or log.partition >= len(topic.partitions)
                or log.topic_id not in (None, topic.topic_id)
            ):
                self.log_manager.set_aside(log.topic, log.partition)

    # ---- stopping

    async def stop(self, *, clean: bool = True) -> None:
        """Close the connections, then the logs; after a clean stop the next start need not scan anything."""
        if self.monitor is not None:
            self.monitor.stopping()
        if self._self_check is not None:
            self._self_check.cancel()
            self._self_check = None
        if self._network is not None:
            self._network.close()
            self._dispatcher.close()
            self.heavy_batches.close()
            self._network = None
        if self._loader is not None:
            await self._loader.stop()
            self._loader = None
        self.coordinators.close()
        if self._maintenance is not None:
            await self._maintenance.stop()
            self._maintenance = None
        if self._log_dir_moves is not None:
            await self._log_dir_moves.stop()
            self._log_dir_moves = None
        await self.log_dir_assignments.stop()
        if self._index_repairs is not None:
            await self._index_repairs.stop()
            self._index_repairs = None
        if self._metadata_log is not None:
            await self._metadata_log.stop()
            self._metadata_log = None
        if self._log_manager is not None:
            if clean:
                offsets = {(p.topic, p.index): p.high_watermark for p in self.replicas.all()}
                self._log_manager.checkpoint_high_watermarks(offsets)
            self._log_manager.close(broker_epoch=self._broker_epoch, clean=clean)
            self._log_manager = None
        if self.monitor is not None:
            self.monitor.close()
            self.monitor = None

    # ---- what the handlers ask for

    def endpoints(self, listener_name: str) -> list[BrokerEndpoint]:
        """The live brokers, by the addresses of this listener."""
        found = []
        for broker in self.image.brokers.values():
            endpoint = broker.endpoints.get(listener_name)
            if endpoint is not None and not broker.fenced:
                found.append(BrokerEndpoint(broker.broker_id, endpoint.host, endpoint.port, broker.rack))
        return found

    async def auto_create_topics(self, names: list[str]) -> None:
        """Create topics with the broker's defaults; one that exists by now or cannot be created is left
        out.
        """
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(name=name, num_partitions=-1, replication_factor=-1) for name in set(names)
            ]
        )
        try:
            await self.controller.submit(lambda controller: controller.create_topics(request))
        except KafkaError as error:
            logger.error("cannot create %s: %s", ", ".join(sorted(set(names))), error.message)

    async def _allocate_producer_ids(self) -> tuple[int, int]:
        block = await self.controller.submit(lambda controller: controller.allocate_producer_ids())
        return block.first_id, block.size

    # ---- what has changed

    def _directory_failed(self, health: DirectoryHealth) -> None:
        """May be called from any thread."""
        self.loop.call_soon_threadsafe(self._take_offline, health)

    def _take_offline(self, health: DirectoryHealth) -> None:
        """Answers that name the offline replicas are made anew, and whoever waits for one is answered."""
        self.metadata_cache.forget()
        if self._log_manager is None:
            return  # the node is being stopped
        for partition in self.replicas.in_directory(health):
            partition.go_offline(health.failure or "its log directory has failed")
        if not self._log_manager.online_dirs:
            logger.critical("no log directory is left, the broker stops")
            self.dead.set()

    def _partition_returned(self, partition: Partition) -> None:
        """A log could be made for which there was no room when its topic was."""
        self.metadata_cache.forget()
        self.coordinators.look_again()
        self.log_dir_assignments.look_at([partition.topic_id])

    def _reconfigured(self, image: MetadataImage) -> None:
        """Settings of this broker are other ones now."""
        self.controller.controller.config = self.config
        self.replicas.broker_config_changed(image)
        cordoned = self.config.cordoned_log_dirs()
        self.log_manager.cordoned = frozenset(
            log_dir for log_dir in self.log_manager.dirs if str(log_dir.path) in cordoned
        )
        environment = self.log_manager.environment
        environment.producer_id_expiration_ms = self.config.get("producer.id.expiration.ms")
        environment.verifies_transactions = self.config.get("transaction.partition.verification.enable")
        if self._network is not None:
            self._network.update_config(self.config)
        if self._maintenance is not None:
            self._maintenance.reconfigured()


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
