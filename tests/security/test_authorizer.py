"""The one question every handler asks, with an authorizer that says no."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from mainstem.protocol.apis.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from mainstem.protocol.apis.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from mainstem.protocol.apis.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from mainstem.protocol.apis.k03_metadata import MetadataRequest, MetadataRequestTopic
from mainstem.protocol.apis.k19_create_topics import CreatableTopic, CreateTopicsRequest
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.protocol.apis.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest
from mainstem.protocol.apis.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from mainstem.protocol.apis.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from mainstem.protocol.apis.k33_alter_configs import AlterConfigsRequest
from mainstem.protocol.apis.k33_alter_configs import AlterConfigsResource as LegacyResource
from mainstem.protocol.apis.k35_describe_log_dirs import DescribeLogDirsRequest
from mainstem.protocol.apis.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from mainstem.protocol.apis.k44_incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mainstem.protocol.apis.k74_list_config_resources import ListConfigResourcesRequest
from mainstem.protocol.apis.k75_describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.security.authorizer import ANONYMOUS, AllowAll, Operation, ResourceType
from mainstem.testing import Broker
from mainstem.testing.in_process import InProcessBroker
from tests.security.asking import call


class DenyAll:
    """Says no, and remembers what it was asked."""

    generation = 0

    def __init__(self) -> None:
        self.asked: set[tuple[Operation, ResourceType, str]] = set()

    def authorize(
        self, principal: str, host: str, operation: Operation, resource: ResourceType, name: str
    ) -> bool:
        assert (principal, host) == (ANONYMOUS, "127.0.0.1")
        self.asked.add((operation, resource, name))
        return False


@pytest.fixture(scope="module")
def broker(runner: asyncio.Runner) -> Iterator[InProcessBroker]:
    broker = Broker.in_process()
    runner.run(broker.start())
    yield broker
    runner.run(broker.close())


def codes_in(value: Any) -> set[int]:
    """Every error code in a response, at any depth."""
    if isinstance(value, list):
        return set().union(*map(codes_in, value)) if value else set()
    if not hasattr(value, "__struct_fields__"):
        return set()
    found = {value.error_code} if hasattr(value, "error_code") else set()
    for name in value.__struct_fields__:
        found |= codes_in(getattr(value, name))
    return found


T = "t"
REQUESTS: list[tuple[Any, int, ErrorCode, Operation, ResourceType]] = [
    (
        ProduceRequest(
            acks=1,
            topic_data=[TopicProduceData(name=T, partition_data=[PartitionProduceData(records=b"")])],
        ),
        12,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        Operation.WRITE,
        ResourceType.TOPIC,
    ),
    (
        FetchRequest(topics=[FetchTopic(topic=T, partitions=[FetchPartition()])]),
        12,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        Operation.READ,
        ResourceType.TOPIC,
    ),
    (
        ListOffsetsRequest(topics=[ListOffsetsTopic(T, [ListOffsetsPartition(timestamp=-1)])]),
        9,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        Operation.DESCRIBE,
        ResourceType.TOPIC,
    ),
    (
        MetadataRequest(topics=[MetadataRequestTopic(name=T)]),
        12,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        Operation.DESCRIBE,
        ResourceType.TOPIC,
    ),
    (
        CreateTopicsRequest(topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)]),
        7,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        Operation.CREATE,
        ResourceType.TOPIC,
    ),
    (
        DeleteTopicsRequest(topics=[DeleteTopicState(name=T)]),
        6,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        Operation.DELETE,
        ResourceType.TOPIC,
    ),
    (
        DeleteRecordsRequest(topics=[DeleteRecordsTopic(T, [DeleteRecordsPartition()])]),
        2,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        Operation.DELETE,
        ResourceType.TOPIC,
    ),
    (
        InitProducerIdRequest(transactional_id=None),
        5,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        Operation.IDEMPOTENT_WRITE,
        ResourceType.CLUSTER,
    ),
    (
        OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(T, [OffsetForLeaderPartition()])]),
        4,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        Operation.DESCRIBE,
        ResourceType.TOPIC,
    ),
    (
        DescribeConfigsRequest(resources=[DescribeConfigsResource(2, T, None)]),
        4,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        Operation.DESCRIBE_CONFIGS,
        ResourceType.TOPIC,
    ),
    (
        DescribeConfigsRequest(resources=[DescribeConfigsResource(4, "1", None)]),
        4,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        Operation.DESCRIBE_CONFIGS,
        ResourceType.CLUSTER,
    ),
    (
        AlterConfigsRequest(resources=[LegacyResource(2, T, [])]),
        2,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        Operation.ALTER_CONFIGS,
        ResourceType.TOPIC,
    ),
    (
        IncrementalAlterConfigsRequest(resources=[AlterConfigsResource(4, "", [])]),
        1,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        Operation.ALTER_CONFIGS,
        ResourceType.CLUSTER,
    ),
    (
        DescribeConfigsRequest(resources=[DescribeConfigsResource(32, "g", None)]),
        4,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        Operation.DESCRIBE_CONFIGS,
        ResourceType.GROUP,
    ),
    (
        IncrementalAlterConfigsRequest(resources=[AlterConfigsResource(32, "g", [])]),
        1,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        Operation.ALTER_CONFIGS,
        ResourceType.GROUP,
    ),
    (
        ListConfigResourcesRequest(),
        1,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        Operation.DESCRIBE_CONFIGS,
        ResourceType.CLUSTER,
    ),
    (
        DescribeLogDirsRequest(topics=None),
        4,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        Operation.DESCRIBE,
        ResourceType.CLUSTER,
    ),
    (
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=T, count=5, assignments=None)]),
        3,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        Operation.ALTER,
        ResourceType.TOPIC,
    ),
    (
        DescribeTopicPartitionsRequest(topics=[TopicRequest(name=T)]),
        0,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        Operation.DESCRIBE,
        ResourceType.TOPIC,
    ),
]


@pytest.mark.parametrize(
    ("request_", "version", "code", "operation", "resource"),
    REQUESTS,
    ids=lambda value: type(value).__name__ if hasattr(value, "SCHEMA") else "",
)
def test_every_handler_asks_and_obeys(
    runner: asyncio.Runner,
    broker: InProcessBroker,
    request_: Any,
    version: int,
    code: ErrorCode,
    operation: Operation,
    resource: ResourceType,
) -> None:
    runner.run(broker.node.auto_create_topics([T]))
    deny = DenyAll()
    broker.node.server.authorizer = deny
    broker.node.metadata_cache.forget()
    try:
        response = runner.run(asyncio.wait_for(call(broker, request_, version), 20))
    finally:
        broker.node.server.authorizer = AllowAll()
        broker.node.metadata_cache.forget()
    assert code in codes_in(response)
    assert (operation, resource) in {(asked[0], asked[1]) for asked in deny.asked}
    assert set(broker.node.image.topics_by_name) == {T}
    assert len(broker.node.image.topics_by_name[T].partitions) == 1


def test_a_list_of_all_topics_leaves_out_those_that_may_not_be_seen(
    runner: asyncio.Runner, broker: InProcessBroker
) -> None:
    runner.run(broker.node.auto_create_topics([T]))
    broker.node.server.authorizer = DenyAll()
    broker.node.metadata_cache.forget()
    response = runner.run(call(broker, MetadataRequest(topics=None), 12))
    everything = runner.run(call(broker, DescribeTopicPartitionsRequest(), 0))
    broker.node.server.authorizer = AllowAll()
    broker.node.metadata_cache.forget()
    assert response.topics == []
    assert everything.topics == []
