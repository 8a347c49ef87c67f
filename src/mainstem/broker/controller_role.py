"""The controller role of a node: it decides on the cluster's metadata, for the broker in the same process.

The controller decides on what is written (sans I/O), the metadata log makes the records durable, the loader
takes them to the publishers. Decisions come one after the other and none waits for the one before it, so that
many share an fsync; each is answered when this node has applied it.
"""

from typing import TypeVar

from mainstem.broker.metadata.ignored_settings import warn_of_ignored
from mainstem.broker.shared_server import SharedServer
from mainstem.cluster.controller import Controller
from mainstem.cluster.directories import Directories
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.producer_ids import ProducerIdBlock
from mainstem.cluster.records import MetadataRecord
from mainstem.cluster.registration import BrokerRegistration
from mainstem.protocol.apis.k19_create_topics import CreateTopicsRequest, CreateTopicsResponse
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from mainstem.protocol.apis.k33_alter_configs import AlterConfigsRequest, AlterConfigsResponse
from mainstem.protocol.apis.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

R = TypeVar("R")


class ControllerRole:
    """The active controller, and the `ControllerClient` of the broker beside it."""

    def __init__(self, server: SharedServer) -> None:
        log = self._log = server.metadata_log
        self._loader = server.loader
        self._configuration = server.configuration
        self._configuration.subscribe(self._reconfigured)
        self._controller = Controller(
            server.node_id, server.config, server.randomness.uuid, lambda: log.pending_image
        )

    def _reconfigured(self, _image: MetadataImage) -> None:
        self._controller.config = self._configuration.current

    async def create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        return await self._decided(*self._controller.create_topics(request))

    async def delete_topics(self, request: DeleteTopicsRequest, api_version: int) -> DeleteTopicsResponse:
        return await self._decided(*self._controller.delete_topics(request, api_version))

    async def create_partitions(self, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
        return await self._decided(*self._controller.create_partitions(request))

    async def alter_configs(self, request: AlterConfigsRequest) -> AlterConfigsResponse:
        return await self._decided(*self._controller.alter_configs(request))

    async def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        return await self._decided(*self._controller.incremental_alter_configs(request))

    async def register_broker(self, registration: BrokerRegistration) -> int:
        return await self._decided(*self._controller.register_broker(registration))

    async def assign_directories(self, places: Directories) -> None:
        await self._decided(*self._controller.assign_directories(places))

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        return await self._decided(*self._controller.allocate_producer_ids())

    async def _decided(self, response: R, records: list[MetadataRecord]) -> R:
        """The response, when this node has applied all that it rests on, be it only what others decided."""
        image = self._log.append(records) if records else self._log.pending_image
        await self._loader.applied(image.offset)
        warn_of_ignored(records)
        return response
