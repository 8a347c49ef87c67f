"""Topics, partitions and settings, made and altered over the wire, and in force when the answer leaves."""

from typing import Any

import pytest

from mainstem.protocol.apis.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from mainstem.protocol.apis.k19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.protocol.apis.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from mainstem.protocol.apis.k33_alter_configs import (
    AlterableConfig as LegacyConfig,
)
from mainstem.protocol.apis.k33_alter_configs import AlterConfigsRequest
from mainstem.protocol.apis.k33_alter_configs import AlterConfigsResource as LegacyResource
from mainstem.protocol.apis.k35_describe_log_dirs import DescribeLogDirsRequest
from mainstem.protocol.apis.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from mainstem.protocol.errors import ErrorCode
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import Client, Topic, alter, create_topic, partition_of, produce, unique_name

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
DYNAMIC_TOPIC, DYNAMIC_DEFAULT_BROKER, DYNAMIC_BROKER = 1, 3, 2


async def create(client: Client, version: int | None = None, **options: Any) -> Any:
    request = CreateTopicsRequest(timeout_ms=10_000, validate_only=options.pop("validate_only", False))
    wanted: dict[str, Any] = {"name": unique_name(), "num_partitions": 1, "replication_factor": 1} | options
    request.topics = [CreatableTopic(**wanted)]
    return (await client.call(request, version)).topics[0]


async def delete(client: Client, *wishes: DeleteTopicState, version: int | None = None) -> list[int]:
    request = DeleteTopicsRequest(topics=list(wishes), timeout_ms=10_000)
    request.topic_names = [wish.name or "" for wish in wishes] if version and version < 6 else []
    return [result.error_code for result in (await client.call(request, version)).responses]


async def describe(client: Client, kind: int, name: str, *keys: str) -> dict[str, Any]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
    (result,) = (await client.call(request)).results
    assert result.error_code == 0, result.error_message
    return {entry.name: entry for entry in result.configs}


# ---- topics


@pytest.mark.parametrize("version", range(2, 8))
async def test_a_created_topic_takes_records_at_once(
    client: Client, broker: InProcessBroker, version: int
) -> None:
    created = await create(client, version, num_partitions=3)
    assert created.error_code == 0
    if version >= 5:
        assert (created.num_partitions, created.replication_factor) == (3, 1)
        assert {entry.name for entry in created.configs} >= {"retention.ms", "cleanup.policy"}
    topic_id = broker.node.image.topics_by_name[created.name].topic_id
    assert (await produce(client, Topic(created.name, topic_id), b"v", partition=2)).error_code == 0


async def test_minus_1_means_the_defaults_of_the_broker(make_broker: MakeBroker, connect: Connect) -> None:
    client = await connect(await make_broker({"num.partitions": 5}))
    assert (await create(client, num_partitions=-1, replication_factor=-1)).num_partitions == 5


async def test_validate_only_creates_nothing(client: Client, broker: InProcessBroker) -> None:
    result = await create(client, validate_only=True)
    assert result.error_code == 0
    assert result.name not in broker.node.image.topics_by_name


async def test_partitions_may_be_assigned_by_hand(client: Client) -> None:
    by_hand = [CreatableReplicaAssignment(partition_index=n, broker_ids=[1]) for n in range(2)]
    made = await create(client, num_partitions=-1, replication_factor=-1, assignments=by_hand)
    assert (made.error_code, made.num_partitions) == (0, 2)
    unknown = [CreatableReplicaAssignment(partition_index=0, broker_ids=[7])]
    refused = await create(client, num_partitions=-1, replication_factor=-1, assignments=unknown)
    assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"name": "a/b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"replication_factor": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"configs": [CreatableTopicConfig("retention.ms", "soon")]}, ErrorCode.INVALID_CONFIG),
        ({"configs": [CreatableTopicConfig("no.such.config", "1")]}, ErrorCode.INVALID_CONFIG),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_a_topic_that_cannot_be_is_refused_with_a_reason(
    client: Client, options: dict[str, Any], code: ErrorCode
) -> None:
    refused = await create(client, **options)
    assert refused.error_code == code
    assert refused.error_message


async def test_a_topic_that_exists_is_not_made_again(client: Client) -> None:
    topic = await create_topic(client)
    assert (await create(client, name=topic.name)).error_code == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize("version", range(1, 7))
async def test_topics_are_deleted_by_name(client: Client, broker: InProcessBroker, version: int) -> None:
    topic = await create_topic(client)
    wish = DeleteTopicState(name=topic.name)
    assert await delete(client, wish, version=version) == [0]
    assert topic.name not in broker.node.image.topics_by_name
    assert await delete(client, wish, version=version) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_topics_are_deleted_by_id(client: Client) -> None:
    topic = await create_topic(client)
    wish = DeleteTopicState(name=None, topic_id=topic.topic_id)
    assert await delete(client, wish) == [0]
    assert await delete(client, wish) == [ErrorCode.UNKNOWN_TOPIC_ID]


async def test_deletion_may_be_disabled(make_broker: MakeBroker, connect: Connect) -> None:
    client = await connect(await make_broker({"delete.topic.enable": "false"}))
    topic = await create_topic(client)
    assert await delete(client, DeleteTopicState(name=topic.name)) == [ErrorCode.TOPIC_DELETION_DISABLED]


async def test_a_deleted_topics_folder_is_renamed_at_once(client: Client, broker: InProcessBroker) -> None:
    topic = await create_topic(client, partitions=2)
    await produce(client, topic, b"v")
    assert await delete(client, DeleteTopicState(name=topic.name)) == [0]
    folders = {path.name for path in broker.data_dir.iterdir() if path.name.startswith(topic.name)}
    assert not folders & {f"{topic.name}-0", f"{topic.name}-1"}
    assert all(name.endswith("-delete") for name in folders)
    assert len(folders) == 2


async def test_partitions_only_grow(client: Client) -> None:
    topic = await create_topic(client, partitions=2)

    async def grow(count: int, **options: Any) -> int:
        wish = CreatePartitionsTopic(name=topic.name, count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[wish], timeout_ms=10_000, **options)
        return int((await client.call(request)).results[0].error_code)

    assert await grow(1) == await grow(2) == ErrorCode.INVALID_PARTITIONS
    assert await grow(4, validate_only=True) == 0
    assert (await produce(client, topic, b"v", partition=3)).error_code == 3
    assert await grow(4) == 0
    assert (await produce(client, topic, b"v", partition=3)).error_code == 0


# ---- settings


async def test_a_topics_setting_is_in_force_when_the_answer_leaves(client: Client) -> None:
    topic = await create_topic(client)
    assert (await produce(client, topic, bytes(5000))).error_code == 0
    assert await alter(client, TOPIC, topic.name, ("max.message.bytes", SET, "1000")) == 0
    assert (await produce(client, topic, bytes(5000))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    entry = (await describe(client, TOPIC, topic.name, "max.message.bytes"))["max.message.bytes"]
    assert (entry.value, entry.config_source, entry.config_type) == ("1000", DYNAMIC_TOPIC, 3)
    assert [synonym.name for synonym in entry.synonyms] == ["max.message.bytes", "message.max.bytes"]
    assert entry.documentation
    assert await alter(client, TOPIC, topic.name, ("max.message.bytes", DELETE, None)) == 0
    assert (await produce(client, topic, bytes(5000))).error_code == 0


async def test_a_list_is_appended_to_and_subtracted_from(client: Client, broker: InProcessBroker) -> None:
    topic = await create_topic(client)
    assert await alter(client, TOPIC, topic.name, ("cleanup.policy", APPEND, "compact")) == 0
    assert partition_of(broker, topic).log.config.cleanup_policy == {"delete", "compact"}
    assert await alter(client, TOPIC, topic.name, ("cleanup.policy", SUBTRACT, "delete")) == 0
    assert partition_of(broker, topic).log.config.cleanup_policy == {"compact"}


async def test_the_old_alter_configs_replaces_everything(client: Client, broker: InProcessBroker) -> None:
    topic = await create_topic(client, configs={"retention.ms": "1234", "segment.bytes": "2000000"})
    configs = [LegacyConfig(name="retention.bytes", value="5")]
    resource = LegacyResource(resource_type=TOPIC, resource_name=topic.name, configs=configs)
    response = await client.call(AlterConfigsRequest(resources=[resource]))
    assert response.responses[0].error_code == 0
    config = partition_of(broker, topic).log.config
    assert (config.retention_bytes, config.retention_ms) == (5, 604800000)


async def test_a_brokers_setting_reaches_every_topic_without_its_own(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker()
    client = await connect(broker)
    own = await create_topic(client, configs={"max.message.bytes": "9000", "retention.ms": "77"})
    plain = await create_topic(client)
    for name, how in (("", DYNAMIC_DEFAULT_BROKER), ("1", DYNAMIC_BROKER)):
        limit = "800" if name else "900"
        changes = (("message.max.bytes", SET, limit), ("log.retention.ms", SET, "60000"))
        assert await alter(client, BROKER, name, *changes) == 0
        entry = (await describe(client, BROKER, "1", "message.max.bytes"))["message.max.bytes"]
        assert (entry.value, entry.config_source) == (limit, how)
    assert (await produce(client, plain, bytes(2000))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert (await produce(client, own, bytes(2000))).error_code == 0
    assert partition_of(broker, plain).log.config.retention_ms == 60000
    assert partition_of(broker, own).log.config.retention_ms == 77
    await broker.restart()
    client = await connect(broker)
    assert (await produce(client, plain, bytes(2000))).error_code == ErrorCode.MESSAGE_TOO_LARGE


async def test_what_cannot_be_altered_is_refused(client: Client) -> None:
    topic = await create_topic(client)
    assert await alter(client, BROKER, "1", ("log.dirs", SET, "/elsewhere")) == ErrorCode.INVALID_REQUEST
    assert await alter(client, TOPIC, topic.name, ("retention.ms", SET, "x")) == ErrorCode.INVALID_CONFIG
    assert await alter(client, TOPIC, "nobody", ("retention.ms", SET, "1")) != 0


async def test_settings_of_unknown_resources_are_refused(client: Client) -> None:
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name="nobody", configuration_keys=None),
        DescribeConfigsResource(resource_type=BROKER, resource_name="99", configuration_keys=None),
        DescribeConfigsResource(resource_type=BROKER, resource_name="x", configuration_keys=None),
        DescribeConfigsResource(resource_type=77, resource_name="", configuration_keys=None),
    ]
    results = (await client.call(DescribeConfigsRequest(resources=resources))).results
    codes = [result.error_code for result in results]
    assert codes[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert set(codes[1:]) == {ErrorCode.INVALID_REQUEST}
    assert all(result.error_message for result in results)


async def test_log_dirs_tell_the_size_of_every_partition(client: Client, broker: InProcessBroker) -> None:
    topic = await create_topic(client)
    await produce(client, topic, bytes(1000))
    for version in range(1, 6):
        (result,) = (await client.call(DescribeLogDirsRequest(topics=None), version)).results
        sizes = {t.name: t.partitions[0].partition_size for t in result.topics}
        assert sizes[topic.name] == partition_of(broker, topic).log.size > 1000
    assert result.log_dir == str(broker.data_dir)
    assert result.total_bytes > result.usable_bytes > 0


async def test_a_new_partition_starts_at_offset_0(client: Client) -> None:
    topic = await create_topic(client, partitions=2)
    asked = [ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(2)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic.name, partitions=asked)])
    assert [p.offset for p in (await client.call(request)).topics[0].partitions] == [0, 0]
