"""How the broker reaches the controller: one interface, whether it is in this process or elsewhere.

Everything that is asked for can be sent. An answer comes when this node has applied what it rests on; a
KafkaError says that nothing has changed.
"""

from typing import Protocol

from mainstem.protocol.apis.k19_create_topics import CreateTopicsRequest, CreateTopicsResponse
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from mainstem.protocol.apis.k33_alter_configs import AlterConfigsRequest, AlterConfigsResponse
from mainstem.protocol.apis.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from mainstem.protocol.apis.k62_broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from mainstem.protocol.apis.k67_allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from mainstem.protocol.apis.k73_assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)


class ControllerClient(Protocol):
    """What a broker asks the active controller for, on behalf of its clients or on its own."""

    async def create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse: ...

    async def delete_topics(self, request: DeleteTopicsRequest, api_version: int) -> DeleteTopicsResponse: ...

    async def create_partitions(self, request: CreatePartitionsRequest) -> CreatePartitionsResponse: ...

    async def alter_configs(self, request: AlterConfigsRequest) -> AlterConfigsResponse: ...

    async def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse: ...

    async def register_broker(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse: ...

    async def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest
    ) -> AssignReplicasToDirsResponse: ...

    async def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest
    ) -> AllocateProducerIdsResponse: ...
