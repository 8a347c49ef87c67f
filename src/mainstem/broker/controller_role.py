"""The controller role of a node: while it leads the metadata quorum, it decides on the cluster's metadata.

The controller decides on what is written (sans I/O), the metadata log makes the records durable, the loader
takes them to the publishers. Decisions come one after the other and none waits for the one before it, so that
many share an fsync; each is answered when this node has applied it. What the controller does by itself (a
broker's session ends, partitions are elected) is done by a timer, a piece at a time.

Each method takes a request of Kafka's and gives its response. Those that brokers and tools ask for by a
response with an error of its own never raise; the others raise KafkaError, and then nothing has changed.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from mainstem.broker.metadata.broker_notices import RefusedBrokers, tell_of_brokers, warn_of_silent
from mainstem.broker.metadata.ignored_settings import warn_of_ignored
from mainstem.broker.network.probe import is_refused
from mainstem.broker.shared_server import SharedServer
from mainstem.cluster.controller.controller import Controller
from mainstem.cluster.controller.probes import Probe
from mainstem.cluster.features import KRAFT_VERSION
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.records import MetadataRecord
from mainstem.protocol import registry
from mainstem.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from mainstem.protocol.apis.k19_create_topics import CreateTopicsRequest, CreateTopicsResponse
    from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
    from mainstem.protocol.apis.k33_alter_configs import AlterConfigsRequest, AlterConfigsResponse
    from mainstem.protocol.apis.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
    from mainstem.protocol.apis.k43_elect_leaders import ElectLeadersRequest, ElectLeadersResponse
    from mainstem.protocol.apis.k44_incremental_alter_configs import (
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
    )
    from mainstem.protocol.apis.k45_alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
    )
    from mainstem.protocol.apis.k46_list_partition_reassignments import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
    )
    from mainstem.protocol.apis.k56_alter_partition import AlterPartitionRequest, AlterPartitionResponse
    from mainstem.protocol.apis.k57_update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
    from mainstem.protocol.apis.k62_broker_registration import (
        BrokerRegistrationRequest,
        BrokerRegistrationResponse,
    )
    from mainstem.protocol.apis.k63_broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
    from mainstem.protocol.apis.k64_unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
    from mainstem.protocol.apis.k67_allocate_producer_ids import (
        AllocateProducerIdsRequest,
        AllocateProducerIdsResponse,
    )
    from mainstem.protocol.apis.k70_controller_registration import (
        ControllerRegistrationRequest,
        ControllerRegistrationResponse,
    )
    from mainstem.protocol.apis.k73_assign_replicas_to_dirs import (
        AssignReplicasToDirsRequest,
        AssignReplicasToDirsResponse,
    )

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0

R = TypeVar("R")


Decision = tuple[R, list[MetadataRecord]]


class ControllerRole:
    """One node's; it refuses (NOT_CONTROLLER) while another node is the active controller."""

    def __init__(self, server: SharedServer) -> None:
        log = self._log = server.metadata_log
        self._server = server
        self._loader = server.loader
        self._configuration = server.configuration
        self._configuration.subscribe(self._reconfigured)
        self._controller = Controller(
            server.node_id,
            server.config,
            server.randomness.uuid,
            lambda: log.pending_image,
            lambda: server.quorum.history.voters.ids,
            self._now_ms(),
        )
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._probes: set[asyncio.Task[None]] = set()
        self._refused = RefusedBrokers()
        self._was_active = self.is_active
        server.quorum.subscribe(self._leader_changed)
        self._set_timer()

    @property
    def is_active(self) -> bool:
        return self._server.quorum.is_active

    def _leader_changed(self) -> None:
        """Whoever begins to decide knows only what is on record."""
        if self.is_active and not self._was_active:
            self._controller.activate(self._now_ms())
        self._was_active = self.is_active
        self._set_timer()

    def _reconfigured(self, _image: MetadataImage) -> None:
        self._controller.config = self._configuration.current

    # ---- what clients ask for

    async def create_topics(self, request: "CreateTopicsRequest") -> "CreateTopicsResponse":
        return await self._decided(lambda: self._controller.create_topics(request))

    async def delete_topics(self, request: "DeleteTopicsRequest", api_version: int) -> "DeleteTopicsResponse":
        return await self._decided(lambda: self._controller.delete_topics(request, api_version))

    async def create_partitions(self, request: "CreatePartitionsRequest") -> "CreatePartitionsResponse":
        return await self._decided(lambda: self._controller.create_partitions(request))

    async def alter_configs(self, request: "AlterConfigsRequest") -> "AlterConfigsResponse":
        return await self._decided(lambda: self._controller.alter_configs(request))

    async def incremental_alter_configs(
        self, request: "IncrementalAlterConfigsRequest"
    ) -> "IncrementalAlterConfigsResponse":
        return await self._decided(lambda: self._controller.incremental_alter_configs(request))

    async def elect_leaders(self, request: "ElectLeadersRequest") -> "ElectLeadersResponse":
        return await self._answered(43, lambda: self._controller.elect_leaders(request))

    async def unregister_broker(self, request: "UnregisterBrokerRequest") -> "UnregisterBrokerResponse":
        return await self._answered(64, lambda: self._controller.unregister_broker(request))

    async def update_features(
        self, request: "UpdateFeaturesRequest", api_version: int
    ) -> "UpdateFeaturesResponse":
        """The quorum's own level comes last: it is written by the quorum, and stays when all else is well."""
        response = await self._answered(57, lambda: self._controller.update_features(request, api_version))
        for update in request.feature_updates if not response.error_code else ():
            if update.feature == KRAFT_VERSION:
                try:
                    await self._server.quorum.upgrade_kraft_version(
                        update.max_version_level, validate_only=request.validate_only
                    )
                except KafkaError as error:
                    response.error_code = error.code
                    response.error_message = error.message or error.code.message
        return response

    async def alter_partition_reassignments(
        self, request: "AlterPartitionReassignmentsRequest"
    ) -> "AlterPartitionReassignmentsResponse":
        return await self._answered(
            45,
            lambda: self._controller.alter_partition_reassignments(request),
        )

    async def list_partition_reassignments(
        self, request: "ListPartitionReassignmentsRequest"
    ) -> "ListPartitionReassignmentsResponse":
        return await self._answered(
            46,
            lambda: (self._controller.list_partition_reassignments(request), []),
        )

    # ---- what brokers and controllers ask for

    async def register_broker(
        self, request: "BrokerRegistrationRequest", *, is_own: bool = True
    ) -> "BrokerRegistrationResponse":
        """`is_own`: the broker of this node asks, not one that says so over the wire."""
        cluster_id = self._server.log_manager.meta.cluster_id

        def decide() -> "tuple[BrokerRegistrationResponse, list[MetadataRecord]]":
            try:
                return self._controller.register_broker(request, cluster_id, self._now_ms(), is_own=is_own)
            except KafkaError as error:
                self._refused.tell(request.broker_id, error.message)
                raise

        response: BrokerRegistrationResponse = await self._answered(62, decide)
        if response.error_code == ErrorCode.NONE:
            self._refused.let_in(request.broker_id)
        return response

    async def heartbeat(self, request: "BrokerHeartbeatRequest") -> "BrokerHeartbeatResponse":
        return await self._answered(63, lambda: self._controller.heartbeat(request, self._now_ms()))

    async def alter_partition(
        self, request: "AlterPartitionRequest", api_version: int
    ) -> "AlterPartitionResponse":
        return await self._answered(56, lambda: self._controller.alter_partition(request, api_version))

    async def allocate_producer_ids(
        self, request: "AllocateProducerIdsRequest"
    ) -> "AllocateProducerIdsResponse":
        return await self._answered(67, lambda: self._controller.allocate_producer_ids(request))

    async def assign_replicas_to_dirs(
        self, request: "AssignReplicasToDirsRequest"
    ) -> "AssignReplicasToDirsResponse":
        return await self._answered(73, lambda: self._controller.assign_replicas_to_dirs(request))

    async def register_controller(
        self, request: "ControllerRegistrationRequest"
    ) -> "ControllerRegistrationResponse":
        return await self._answered(70, lambda: self._controller.register_controller(request))

    # ---- deciding

    async def _answered(self, api_key: int, decide: Callable[[], Decision[R]]) -> R:
        """The response, that of a failure too."""
        try:
            return await self._decided(decide)
        except KafkaError as error:
            response: Any = registry.response_class(api_key)()
            response.error_code = error.code
            if hasattr(response, "error_message"):
                response.error_message = error.message or error.code.message
            refused: R = response
            return refused

    async def _decided(self, decide: Callable[[], Decision[R]]) -> R:
        """The response, when this node has applied all that it rests on, be it only what others decided."""
        if not self.is_active:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        response, records = decide()
        image = self._append(records) if records else self._log.pending_image
        self._set_timer()
        await self._loader.applied(image.offset)
        warn_of_ignored(records)
        return response

    def _append(self, records: list[MetadataRecord]) -> MetadataImage:
        before = self._log.pending_image
        image = self._log.append(records)
        if (before.brokers.keys() | image.brokers.keys()) - {self._server.node_id}:
            tell_of_brokers(records)
        self._controller.appended(records, before, image, self._now_ms())
        return image

    # ---- what happens by itself

    def connection_lost(self, broker_id: int, broker_epoch: int) -> None:
        """The connection is gone on which this broker sent its last heartbeat."""
        if self.is_active:
            self._controller.connection_lost(broker_id, broker_epoch, self._now_ms())
            self._set_timer()

    def close(self) -> None:
        """Do nothing more by itself, whatever connections are lost after that."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for task in self._probes:
            task.cancel()

    def _now_ms(self) -> int:
        return self._server.clock.steady_ms()

    def _set_timer(self, pause_s: float = 0.0) -> None:
        may_work = self.is_active and not self._closed
        deadline_ms = self._controller.deadline_ms() if may_work else None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline_ms is not None:
            seconds = max(pause_s, (deadline_ms - self._now_ms()) / 1000)
            self._timer = self._server.loop.call_later(seconds, self._work)

    def _work(self) -> None:
        """One piece of what there is to do now."""
        self._timer = None
        if not self.is_active:
            return
        work = self._controller.time_passed(self._now_ms())
        warn_of_silent(work.records)
        for probe in work.probes:
            task = self._server.loop.create_task(self._probe(probe))
            self._probes.add(task)
            task.add_done_callback(self._probes.discard)
        self._set_timer(0.0 if self._is_appended(work.records) else _RETRY_SECONDS)

    async def _probe(self, probe: Probe) -> None:
        refused = await is_refused(self._server.loop, probe.host, probe.port)
        if not self.is_active:
            return
        if refused:
            records = self._controller.refused(probe, self._now_ms())
            if records:
                logger.warning("broker %d is dead: nobody listens at its address any more", probe.broker_id)
                self._is_appended(records)
        else:
            self._controller.not_refused(probe, self._now_ms())
        self._set_timer()

    def _is_appended(self, records: list[MetadataRecord]) -> bool:
        """Whether what was decided without anybody's asking is written; it is decided again otherwise."""
        if records:
            try:
                self._append(records)
            except KafkaError as error:
                logger.error("cannot write the metadata log: %s", error.message)
                return False
        return True
