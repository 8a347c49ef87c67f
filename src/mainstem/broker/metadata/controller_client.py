"""How the broker speaks to the active controller: Kafka's own messages, whether it is this node or another.

Heartbeats have a connection of their own, so that no other request that the controller takes long for holds
them up. Everything else that a broker wants shares one; what clients want goes another way
(`broker/forwarding`).
"""

from typing import TYPE_CHECKING, Final

from mainstem.broker.metadata.controller_channel import ControllerChannel
from mainstem.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from mainstem.broker.shared_server import SharedServer
    from mainstem.protocol.apis.k19_create_topics import CreateTopicsRequest, CreateTopicsResponse
    from mainstem.protocol.apis.k56_alter_partition import AlterPartitionRequest, AlterPartitionResponse
    from mainstem.protocol.apis.k62_broker_registration import (
        BrokerRegistrationRequest,
        BrokerRegistrationResponse,
    )
    from mainstem.protocol.apis.k63_broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
    from mainstem.protocol.apis.k67_allocate_producer_ids import (
        AllocateProducerIdsRequest,
        AllocateProducerIdsResponse,
    )
    from mainstem.protocol.apis.k73_assign_replicas_to_dirs import (
        AssignReplicasToDirsRequest,
        AssignReplicasToDirsResponse,
    )


_NEWEST: Final = 3  # version of AlterPartition
_APPLIED_WITHIN_SECONDS: Final = 5.0


class ControllerClient:
    """Each request is tried until it is answered or its time is over: KafkaError (REQUEST_TIMED_OUT) then.
    The errors in an answer are the caller's to look at.
    """

    def __init__(self, server: "SharedServer") -> None:
        self._server = server
        self._heartbeats = ControllerChannel(server)
        self._channel = ControllerChannel(server)

    async def register(
        self, request: "BrokerRegistrationRequest", timeout_s: float
    ) -> "BrokerRegistrationResponse":
        response: BrokerRegistrationResponse = await self._heartbeats.call(
            request, timeout_s=timeout_s, here=lambda role: role.register_broker(request)
        )
        return response

    async def heartbeat(
        self, request: "BrokerHeartbeatRequest", timeout_s: float
    ) -> "BrokerHeartbeatResponse":
        response: BrokerHeartbeatResponse = await self._heartbeats.call(
            request, timeout_s=timeout_s, here=lambda role: role.heartbeat(request)
        )
        return response

    async def alter_partition(self, request: "AlterPartitionRequest") -> "AlterPartitionResponse":
        response: AlterPartitionResponse = await self._channel.call(
            request, timeout_s=self._timeout_s, here=lambda role: role.alter_partition(request, _NEWEST)
        )
        return response

    async def allocate_producer_ids(
        self, request: "AllocateProducerIdsRequest"
    ) -> "AllocateProducerIdsResponse":
        response: AllocateProducerIdsResponse = await self._channel.call(
            request, timeout_s=self._timeout_s, here=lambda role: role.allocate_producer_ids(request)
        )
        return response

    async def assign_directories(
        self, request: "AssignReplicasToDirsRequest"
    ) -> "AssignReplicasToDirsResponse":
        response: AssignReplicasToDirsResponse = await self._channel.call(
            request, timeout_s=self._timeout_s, here=lambda role: role.assign_replicas_to_dirs(request)
        )
        return response

    async def create_topics(self, request: "CreateTopicsRequest") -> "CreateTopicsResponse":
        """Answered when this node has applied them, if that is soon: its clients look for them here."""
        response: CreateTopicsResponse = await self._channel.call(
            request, timeout_s=self._timeout_s, here=lambda role: role.create_topics(request)
        )
        made = [result.name for result in response.topics if result.error_code == ErrorCode.NONE]
        await self._server.metadata_cache.wait_for(
            lambda image: all(name in image.topics_by_name for name in made), _APPLIED_WITHIN_SECONDS
        )
        return response

    def close(self) -> None:
        self._heartbeats.close()
        self._channel.close()

    @property
    def _timeout_s(self) -> float:
        timeout_ms: int = self._server.config.get("request.timeout.ms")
        return timeout_ms / 1000
