"""Metadata (key 3): brokers, controller, topics and partition leaders. Null asks for all topics."""

from typing import Annotated, ClassVar

from msgspec import Struct

from mainstem.protocol.schema import I16, I32, ApiMessage, Uuid, nullable, versions
from mainstem.protocol.uuids import ZERO_UUID


class MetadataRequestTopic(Struct, gc=False):
    topic_id: Annotated[Uuid, versions("10+")] = ZERO_UUID
    name: Annotated[str | None, nullable("10+")] = ""


class MetadataRequest(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=3, kind="request")
    topics: Annotated[list[MetadataRequestTopic] | None, nullable("1+")] = []
    allow_auto_topic_creation: Annotated[bool, versions("4+")] = True
    include_cluster_authorized_operations: Annotated[bool, versions("8-10")] = False
    include_topic_authorized_operations: Annotated[bool, versions("8+")] = False


class MetadataResponseBroker(Struct, gc=False):
    node_id: I32 = 0
    host: str = ""
    port: I32 = 0
    rack: Annotated[str | None, versions("1+"), nullable("1+")] = None


class MetadataResponsePartition(Struct, gc=False):
    error_code: I16 = 0
    partition_index: I32 = 0
    leader_id: I32 = 0
    leader_epoch: Annotated[I32, versions("7+")] = -1
    replica_nodes: list[I32] = []
    isr_nodes: list[I32] = []
    offline_replicas: Annotated[list[I32], versions("5+")] = []


class MetadataResponseTopic(Struct, gc=False):
    error_code: I16 = 0
    name: Annotated[str | None, nullable("12+")] = ""
    topic_id: Annotated[Uuid, versions("10+")] = ZERO_UUID
    is_internal: Annotated[bool, versions("1+")] = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: Annotated[I32, versions("8+")] = -2147483648


class MetadataResponse(Struct, gc=False):
    SCHEMA: ClassVar = ApiMessage(api_key=3, kind="response")
    throttle_time_ms: Annotated[I32, versions("3+")] = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: Annotated[str | None, versions("2+"), nullable("2+")] = None
    controller_id: Annotated[I32, versions("1+")] = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Annotated[I32, versions("8-10")] = -2147483648
    error_code: Annotated[I16, versions("13+")] = 0
