"""The controller: it decides every change of the cluster's metadata.

It takes a request and the newest image and returns the answer with the records to append; the change happens
when these are durable and replayed, and only then. No clock, no randomness, no I/O: what it needs of these is
handed to it. Every rule lives in the file of its concern; this class only holds what they share.
"""

from collections.abc import Callable

from msgspec.structs import replace

from mainstem.cluster import (
    configs,
    directories,
    partitions,
    producer_ids,
    registration,
    topic_deletion,
    topics,
)
from mainstem.cluster.directories import Directories
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.producer_ids import ProducerIdBlock
from mainstem.cluster.records import MetadataRecord
from mainstem.cluster.registration import BrokerRegistration
from mainstem.config import BrokerConfig
from mainstem.protocol.apis.k19_create_topics import CreateTopicsRequest, CreateTopicsResponse
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from mainstem.protocol.apis.k33_alter_configs import AlterConfigsRequest, AlterConfigsResponse
from mainstem.protocol.apis.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class Controller:
    """Decides on what `newest_image` gives, which must hold every record that was ever appended.

    `config` is replaced when the broker's settings are altered; `new_uuid` gives ids that are unused.
    """

    def __init__(
        self,
        node_id: int,
        config: BrokerConfig,
        new_uuid: Callable[[], bytes],
        newest_image: Callable[[], MetadataImage],
    ) -> None:
        self.node_id = node_id
        self.config = config
        self._new_uuid = new_uuid
        self._newest_image = newest_image

    def create_topics(
        self, request: CreateTopicsRequest
    ) -> tuple[CreateTopicsResponse, list[MetadataRecord]]:
        return topics.create_topics(self._image_for_placement(), self.config, request, self._new_uuid)

    def delete_topics(
        self, request: DeleteTopicsRequest, api_version: int
    ) -> tuple[DeleteTopicsResponse, list[MetadataRecord]]:
        return topic_deletion.delete_topics(self._newest_image(), self.config, request, api_version)

    def create_partitions(
        self, request: CreatePartitionsRequest
    ) -> tuple[CreatePartitionsResponse, list[MetadataRecord]]:
        return partitions.create_partitions(self._image_for_placement(), request)

    def _image_for_placement(self) -> MetadataImage:
        """The newest image. This node's own broker counts as its settings are now, without a record of it."""
        image = self._newest_image()
        broker = image.brokers.get(self.node_id)
        if broker is None or not self.config.cordoned_log_dirs() >= set(self.config.log_dirs()):
            return image
        cordoned = replace(broker, cordoned_log_dirs=broker.log_dirs)
        return replace(image, brokers={**image.brokers, self.node_id: cordoned})

    def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest
    ) -> tuple[IncrementalAlterConfigsResponse, list[MetadataRecord]]:
        return configs.incremental_alter_configs(self._newest_image(), self.config, self.node_id, request)

    def alter_configs(
        self, request: AlterConfigsRequest
    ) -> tuple[AlterConfigsResponse, list[MetadataRecord]]:
        return configs.alter_configs(self._newest_image(), self.config, self.node_id, request)

    def allocate_producer_ids(self) -> tuple[ProducerIdBlock, list[MetadataRecord]]:
        """A block for this node's own broker; its ids may be issued once the record is durable."""
        image = self._newest_image()
        broker = image.brokers.get(self.node_id)
        return producer_ids.allocate_producer_ids(image, self.node_id, -1 if broker is None else broker.epoch)

    def assign_directories(self, places: Directories) -> tuple[None, list[MetadataRecord]]:
        """Write down where replicas of this node's own broker are."""
        return directories.assign_directories(self._newest_image(), self.node_id, places)

    def register_broker(self, broker: BrokerRegistration) -> tuple[int, list[MetadataRecord]]:
        """The broker epoch and the records, which must be the next ones in the log. The broker of this node
        has replayed all that its controller has; any other is fenced until it says so.
        """
        is_other = broker.broker_id != self.node_id
        return registration.register_broker(self._newest_image(), broker, fenced=is_other)
