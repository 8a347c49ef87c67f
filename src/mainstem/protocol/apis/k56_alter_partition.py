"""AlterPartition (key 56): the leader of partitions asks the controller to change their in-sync replicas.

v3 carries the broker epochs of the replicas (KIP-903).
"""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I16, I32, I64, ApiMessage, Uuid, versions
from mainstem.protocol.uuids import ZERO_UUID


class BrokerState(Struct, gc=False):
    broker_id: I32 = 0
    broker_epoch: I64 = -1


class PartitionData(Struct, gc=False):
    partition_index: I32 = 0
    leader_epoch: I32 = 0
    new_isr: Annotated[list[I32], versions("0-2")] = []
    new_isr_with_epochs: Annotated[list[BrokerState], versions("3+")] = []
    leader_recovery_state: I8 = 0
    partition_epoch: I32 = 0


class TopicData(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[PartitionData] = []


class AlterPartitionRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=56, kind="request")
    broker_id: I32 = 0
    broker_epoch: I64 = -1
    topics: list[TopicData] = []


class ResponsePartitionData(Struct, gc=False):
    partition_index: I32 = 0
    error_code: I16 = 0
    leader_id: I32 = 0
    leader_epoch: I32 = 0
    isr: list[I32] = []
    leader_recovery_state: I8 = 0
    partition_epoch: I32 = 0


class ResponseTopicData(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[ResponsePartitionData] = []


class AlterPartitionResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=56, kind="response")
    throttle_time_ms: I32 = 0
    error_code: I16 = 0
    topics: list[ResponseTopicData] = []
