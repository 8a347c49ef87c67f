"""The node's group coordinators, one for each partition of `__consumer_offsets` that it leads."""

from typing import TYPE_CHECKING, Any

from mainstem.broker.coordination.coordinators import Coordinators, Event
from mainstem.broker.coordination.image_topics import ImageTopics
from mainstem.broker.coordination.internal_topics import CONSUMER_OFFSETS
from mainstem.broker.logs.partition import Partition
from mainstem.broker.requests.context import RequestContext
from mainstem.broker.requests.pending import Fail
from mainstem.config import group_values
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import ConfigResourceType
from mainstem.records.compression import Codec
from mainstem.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from mainstem.broker.logs.replicas import Replicas
    from mainstem.broker.shared_server import SharedServer


class GroupCoordinators(Coordinators[GroupCoordinator]):
    """All groups that this node coordinates."""

    def __init__(self, server: "SharedServer", replicas: "Replicas") -> None:
        self._topics = ImageTopics(server.metadata_cache)
        codec = Codec(server.config.get("offsets.topic.compression.codec"))
        load_buffer_bytes = server.config.get("offsets.load.buffer.size")
        super().__init__(
            server,
            replicas,
            CONSUMER_OFFSETS,
            "offsets.topic",
            codec,
            load_buffer_bytes,
            lambda: server.config.get("offsets.commit.timeout.ms"),
        )

    def _new_machine(self, partition: Partition) -> GroupCoordinator:
        return GroupCoordinator(self._server.config, self._topics, self._new_uuid_text, self._group_config)

    def _topic_configs(self, replicas: int) -> dict[str, str]:
        return {"compression.type": "producer"}

    def _group_config(self, group_id: str) -> dict[str, Any]:
        return group_values(
            self._server.image.config(ConfigResourceType.GROUP, group_id), self._server.config
        )

    def _new_uuid_text(self) -> str:
        """A random UUID in the form with hyphens, as in the member ids that Kafka makes."""
        text = self._server.randomness.uuid().hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def submit_for_member(
        self, ctx: RequestContext, group_id: str, event: Event[GroupCoordinator], fail: Fail
    ) -> Any:
        """`submit`, for what a member asks: it must be allowed to, and the group must have a name."""
        if not ctx.authorize(Operation.READ, ResourceType.GROUP, group_id):
            return fail(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if not group_id:
            return fail(ErrorCode.INVALID_GROUP_ID)
        return self.submit(ctx, group_id, event, fail)

    def write_marker(
        self,
        index: int,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        commit: bool,
        transaction_version: int,
    ) -> None:
        """End a producer's transaction in a partition of `__consumer_offsets`: the offsets that were
        committed in it count from now on, or never. KafkaError when that could not be written.
        """
        self.shell.write_marker(
            index, producer_id, producer_epoch, coordinator_epoch, commit, transaction_version
        )
