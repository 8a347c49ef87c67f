"""The broker role of a node: it serves clients, holds partitions and coordinates groups and transactions.

It holds the parts and wires them; what they decide and do is theirs. Request handlers find the parts here.
"""

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mainstem.broker.clock import Clock
from mainstem.broker.coordination.node_coordinators import NodeCoordinators
from mainstem.broker.lifecycle import Lifecycle
from mainstem.broker.logs.index_repairs import IndexRepairs
from mainstem.broker.logs.log_cleaner import LogCleaner
from mainstem.broker.logs.log_dir_moves import LogDirMoves
from mainstem.broker.logs.maintenance import Maintenance
from mainstem.broker.logs.partition import Partition
from mainstem.broker.logs.replicas import Replicas
from mainstem.broker.metadata.log_dir_assignments import LogDirAssignments
from mainstem.broker.metadata.producer_ids import ProducerIds
from mainstem.broker.network.listener import BoundListener
from mainstem.broker.network.self_check import check_advertised
from mainstem.broker.randomness import Randomness
from mainstem.broker.requests.fetch_session import FetchSessionCache
from mainstem.broker.requests.heavy_batches import HeavyBatches
from mainstem.broker.requests.replica_selection import RACK_AWARE_SELECTOR
from mainstem.broker.shared_server import SharedServer
from mainstem.broker.turns import Turns
from mainstem.cluster.image import MetadataImage, PartitionImage
from mainstem.config import BrokerConfig
from mainstem.protocol.apis.k19_create_topics import CreatableTopic, CreateTopicsRequest
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.storage.directories.log_manager import LogManager
from mainstem.storage.environment import DirectoryHealth

if TYPE_CHECKING:
    from mainstem.broker.coordination.groups import GroupCoordinators
    from mainstem.broker.coordination.transactions import TransactionCoordinators

logger = logging.getLogger(__name__)


class BrokerEndpoint(NamedTuple):
    """Where a client reaches a broker through the listener it asked on."""

    node_id: int
    host: str
    port: int
    rack: str | None


class BrokerRole:
    """It serves when the controller has let it into the cluster and its part of the metadata is applied."""

    def __init__(self, server: SharedServer) -> None:
        self.server = server
        config = server.config
        self.node_id = server.node_id
        self.metadata_cache = server.metadata_cache
        self.clock: Clock = server.clock
        self.randomness: Randomness = server.randomness
        self.dead = server.dead
        self.loop: asyncio.AbstractEventLoop
        self.fetch_sessions = FetchSessionCache(
            config.get("max.incremental.fetch.session.cache.slots"), eviction_ms=120_000
        )
        self.fetch_bytes_max: int = config.get("fetch.max.bytes")
        self.prefers_near_replicas = config.get("replica.selector.class") == RACK_AWARE_SELECTOR
        self._lifecycle: Lifecycle | None = None
        self._coordinators: NodeCoordinators | None = None
        self._maintenance: Maintenance | None = None
        self._index_repairs: IndexRepairs | None = None
        self._log_dir_moves: LogDirMoves | None = None
        self.log_dir_assignments = LogDirAssignments(server)
        self.producer_ids = ProducerIds(self._allocate_producer_ids)
        self._self_check: asyncio.Task[list[str]] | None = None

    @property
    def epoch(self) -> int:
        """That of its registration; -1 before it."""
        return -1 if self._lifecycle is None else self._lifecycle.epoch

    @property
    def bound_listeners(self) -> list[BoundListener]:
        """Where it serves clients."""
        return self.server.client_listeners

    @property
    def turns(self) -> Turns:
        return self.server.turns

    @property
    def log_manager(self) -> LogManager:
        return self.server.log_manager

    @property
    def cleaner(self) -> LogCleaner:
        assert self._maintenance is not None, "the node is not started"
        return self._maintenance.cleaner

    @property
    def log_dir_moves(self) -> LogDirMoves:
        assert self._log_dir_moves is not None, "the node is not started"
        return self._log_dir_moves

    @property
    def coordinators(self) -> NodeCoordinators:
        assert self._coordinators is not None, "the node is not started"
        return self._coordinators

    @property
    def config(self) -> BrokerConfig:
        """The settings that are in force."""
        return self.server.configuration.current

    @property
    def image(self) -> MetadataImage:
        """The newest metadata that this node has applied."""
        return self.metadata_cache.image

    @property
    def groups(self) -> "GroupCoordinators":
        """The group coordinators, which are loaded when the first group asks for one."""
        assert self._coordinators is not None, "the node is not started"
        return self._coordinators.groups

    @property
    def transactions(self) -> "TransactionCoordinators":
        """The transaction coordinators, which are loaded when the first transaction asks for one."""
        assert self._coordinators is not None, "the node is not started"
        return self._coordinators.transactions

    @property
    def cluster_id(self) -> str:
        return self.log_manager.meta.cluster_id

    # ---- starting

    async def start(self) -> None:
        """Join the cluster, load the logs, follow the metadata, and serve. StartupError when that can never
        be.
        """
        server = self.server
        self.loop = server.loop
        self.heavy_batches = HeavyBatches(self.loop, self.turns, server.network.request_memory)
        self._index_repairs = IndexRepairs(self.loop, server.processes)
        environment = self.log_manager.environment
        environment.repair_index = self._index_repairs.ask
        environment.fsyncs = server.monitor.meters.fsyncs if server.monitor else None
        for log_dir in self.log_manager.dirs:
            log_dir.health.on_failure = partial(self._directory_failed, log_dir.health)
        self.replicas = Replicas(server, self._partition_returned)
        lifecycle = self._lifecycle = Lifecycle(server)
        await lifecycle.join()
        image = self.metadata_cache.image = server.metadata_log.image
        self._coordinators = NodeCoordinators(server, self.replicas, self.producer_ids)
        self._maintenance = Maintenance(server, self.replicas)
        server.configuration.subscribe(self._reconfigured)
        server.configuration.take(image)
        server.load_logs(image)
        # In this order: logs are made with the settings of the moment. A topic is in sight, and remembered
        # answers are forgotten, when its logs are made. Coordinators look for both.
        await server.loader.begin(
            (
                server.configuration,
                self.replicas,
                self.metadata_cache,
                self.coordinators,
                self.log_dir_assignments,
                *(() if server.monitor is None else (server.monitor.events,)),
            )
        )
        self._maintenance.start()
        self._log_dir_moves = LogDirMoves(server, self.replicas, self.cleaner, self.log_dir_assignments)
        self._log_dir_moves.resume()
        await lifecycle.serve()
        server.network.start(controllers=False)
        if server.monitor is not None:
            server.monitor.serving(server.network)
            server.monitor.serving_clients(self.replicas, self.cleaner, self.coordinators)
        self._self_check = self.loop.create_task(
            check_advertised(self.bound_listeners, self.loop, self.randomness.fraction)
        )

    # ---- stopping

    async def leave(self) -> None:
        """Have the leaderships move to other brokers, while clients are still served."""
        if self._lifecycle is not None:
            await self._lifecycle.leave()

    def stop_serving(self) -> None:
        """The connections are closed."""
        if self._self_check is not None:
            self._self_check.cancel()
            self._self_check = None
        if self._lifecycle is not None:
            self.heavy_batches.close()

    async def stop_working(self) -> None:
        """Have everything at rest that works on the logs; the metadata does not change any more."""
        if self._lifecycle is not None:
            await self._lifecycle.close()
        if self._coordinators is not None:
            self._coordinators.close()
            await self.replicas.stop()
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

    def checkpoint(self, *, clean: bool) -> None:
        """After a clean stop the next start need not scan anything."""
        if clean:
            offsets = {(p.topic, p.index): p.high_watermark for p in self.replicas.all()}
            self.log_manager.checkpoint_high_watermarks(offsets)

    # ---- what the handlers ask for

    def endpoints(self, listener_name: str) -> list[BrokerEndpoint]:
        """The live brokers, by the addresses of this listener."""
        found = []
        for broker in self.image.brokers.values():
            endpoint = broker.endpoints.get(listener_name)
            if endpoint is not None and not broker.fenced:
                found.append(BrokerEndpoint(broker.broker_id, endpoint.host, endpoint.port, broker.rack))
        return found

    def offline_replicas(self, topic: str, part: PartitionImage) -> list[int]:
        """Those that the metadata tells of, and this broker's if its log cannot be used."""
        offline = part.offline_replicas(self.image.brokers)
        if (
            self.node_id in part.replicas
            and self.node_id not in offline
            and self.replicas.is_offline(topic, part.partition)
        ):
            offline.append(self.node_id)
        return offline

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
            await self.server.controller.create_topics(request)
        except KafkaError as error:
            logger.error("cannot create %s: %s", ", ".join(sorted(set(names))), error.message)

    async def _allocate_producer_ids(self) -> tuple[int, int]:
        from mainstem.protocol.apis.k67_allocate_producer_ids import AllocateProducerIdsRequest

        request = AllocateProducerIdsRequest(self.node_id, self.epoch)
        block = await self.server.controller.allocate_producer_ids(request)
        if block.error_code:
            raise KafkaError(ErrorCode(block.error_code))
        return block.producer_id_start, block.producer_id_len

    # ---- what has changed

    def _directory_failed(self, health: DirectoryHealth) -> None:
        """May be called from any thread."""
        self.loop.call_soon_threadsafe(self._take_offline, health)

    def _take_offline(self, health: DirectoryHealth) -> None:
        """Answers that name the offline replicas are made anew, and whoever waits for one is answered."""
        self.metadata_cache.forget()
        if not self.server.is_open:
            return  # the node is being stopped
        if self._lifecycle is not None:
            self._lifecycle.log_dirs_changed()
        for partition in self.replicas.in_directory(health):
            partition.go_offline(health.failure or "its log directory has failed")
        if not self.log_manager.online_dirs:
            logger.critical("no log directory is left, the broker stops")
            self.dead.set()

    def _partition_returned(self, partition: Partition) -> None:
        """A log could be made for which there was no room when its topic was."""
        self.metadata_cache.forget()
        self.coordinators.look_again()
        self.log_dir_assignments.look_at([partition.topic_id])

    def _reconfigured(self, image: MetadataImage) -> None:
        """Settings of this broker are other ones now."""
        self.replicas.broker_config_changed(image)
        names = self.config.cordoned_log_dirs()
        cordoned = frozenset(log_dir for log_dir in self.log_manager.dirs if str(log_dir.path) in names)
        if cordoned != self.log_manager.cordoned:
            self.log_manager.cordoned = cordoned
            if self._lifecycle is not None:
                self._lifecycle.log_dirs_changed()
        environment = self.log_manager.environment
        environment.producer_id_expiration_ms = self.config.get("producer.id.expiration.ms")
        environment.verifies_transactions = self.config.get("transaction.partition.verification.enable")
        self.server.network.update_config(self.config)
        if self._maintenance is not None:
            self._maintenance.reconfigured()
