"""A group of the consumer protocol (KIP-848): its epoch, its members, target and current assignments."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I8, I32, I64, DataMessage, Uuid, nullable, tagged
from mainstem.protocol.uuids import ZERO_UUID


class ConsumerGroupMetadataKey(Struct, gc=False, frozen=True):
    SCHEMA: ClassVar = DataMessage(record_api_key=3, versions="0")
    group_id: str = ""


class ConsumerGroupMetadataValue(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    epoch: I32 = 0
    metadata_hash: Annotated[I64, tagged(0, "0+")] = 0


class ConsumerGroupPartitionMetadataKey(Struct, gc=False, frozen=True):
    """Written by Kafka before 4.1; only ever deleted here."""

    SCHEMA: ClassVar = DataMessage(record_api_key=4, versions="0")
    group_id: str = ""


class PartitionMetadata(Struct, gc=False):
    partition: I32 = 0
    racks: list[str] = []


class TopicMetadata(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    num_partitions: I32 = 0
    partition_metadata: list[PartitionMetadata] = []


class ConsumerGroupPartitionMetadataValue(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    topics: list[TopicMetadata] = []


class ConsumerGroupMemberMetadataKey(Struct, gc=False, frozen=True):
    SCHEMA: ClassVar = DataMessage(record_api_key=5, versions="0")
    group_id: str = ""
    member_id: str = ""


class ClassicProtocol(Struct, gc=False):
    name: str = ""
    metadata: bytes = b""


class ClassicMemberMetadata(Struct, gc=False):
    """Kafka declares this nullable, and so puts a one before it even where it is a tagged field."""

    presence: I8 = 1
    session_timeout_ms: I32 = 0
    supported_protocols: list[ClassicProtocol] = []


class ConsumerGroupMemberMetadataValue(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    instance_id: Annotated[str | None, nullable("0+")] = None
    rack_id: Annotated[str | None, nullable("0+")] = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
    subscribed_topic_regex: Annotated[str | None, nullable("0+")] = None
    rebalance_timeout_ms: I32 = -1
    server_assignor: Annotated[str | None, nullable("0+")] = None
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, tagged(0, "0+")] = None


class ConsumerGroupTargetAssignmentMetadataKey(Struct, gc=False, frozen=True):
    SCHEMA: ClassVar = DataMessage(record_api_key=6, versions="0")
    group_id: str = ""


class ConsumerGroupTargetAssignmentMetadataValue(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    assignment_epoch: I32 = 0
    assignment_timestamp: Annotated[I64, tagged(0, "0+")] = 0


class ConsumerGroupTargetAssignmentMemberKey(Struct, gc=False, frozen=True):
    SCHEMA: ClassVar = DataMessage(record_api_key=7, versions="0")
    group_id: str = ""
    member_id: str = ""


class TargetTopicPartitions(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[I32] = []


class ConsumerGroupTargetAssignmentMemberValue(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    topic_partitions: list[TargetTopicPartitions] = []


class ConsumerGroupCurrentMemberAssignmentKey(Struct, gc=False, frozen=True):
    SCHEMA: ClassVar = DataMessage(record_api_key=8, versions="0")
    group_id: str = ""
    member_id: str = ""


class CurrentTopicPartitions(Struct, gc=False):
    topic_id: Uuid = ZERO_UUID
    partitions: list[I32] = []
    assignment_epochs: Annotated[list[I32] | None, nullable("0+"), tagged(0, "0+")] = None


class ConsumerGroupCurrentMemberAssignmentValue(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    member_epoch: I32 = 0
    previous_member_epoch: I32 = 0
    state: I8 = 0
    assigned_partitions: list[CurrentTopicPartitions] = []
    partitions_pending_revocation: list[CurrentTopicPartitions] = []


class ConsumerGroupRegularExpressionKey(Struct, gc=False, frozen=True):
    SCHEMA: ClassVar = DataMessage(record_api_key=16, versions="0")
    group_id: str = ""
    regular_expression: str = ""


class ConsumerGroupRegularExpressionValue(Struct, gc=False):
    SCHEMA: ClassVar = DataMessage(versions="0", flexible="0+")
    topics: list[str] = []
    version: I64 = 0
    timestamp: I64 = 0
