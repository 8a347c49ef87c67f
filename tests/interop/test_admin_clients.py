"""Administration through real clients: the errors that their users see are the same on both brokers."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from kafka import KafkaAdminClient, KafkaConsumer
from kafka import TopicPartition as KafkaPythonTopicPartition
from kafka.admin import NewTopic as KafkaPythonNewTopic
from kafka.errors import InvalidPartitionsError, TopicAlreadyExistsError, UnknownTopicOrPartitionError

from tests.support.clients import Message, read_confluent, write_confluent, write_kafka_python
from tests.support.target import KEEP_FOREVER, Target, await_leaders, unique_name, when_settled


def _error(action: Callable[[], Any]) -> int:
    """The code of Kafka's error that the action ends with."""
    with pytest.raises(KafkaException) as caught:
        action()
    error = caught.value.args[0]
    assert isinstance(error, KafkaError)
    assert error.str()
    return error.code()


def test_confluent_admin_creates_grows_and_deletes(target: Target) -> None:
    admin = target.admin()
    name = target.create_topic(partitions=2)
    taken = admin.create_topics([NewTopic(name, 1, 1)])[name]
    assert _error(lambda: taken.result(10)) == KafkaError.TOPIC_ALREADY_EXISTS
    many = admin.create_topics([NewTopic(f"{name}-x", 1, 3)])[f"{name}-x"]
    assert _error(lambda: many.result(10)) == KafkaError.INVALID_REPLICATION_FACTOR
    odd = admin.create_topics([NewTopic("no spaces", 1, 1)])["no spaces"]
    assert _error(lambda: odd.result(10)) == KafkaError.TOPIC_EXCEPTION
    admin.create_partitions([NewPartitions(name, 4)])[name].result(10)
    fewer = admin.create_partitions([NewPartitions(name, 3)])[name]
    assert _error(lambda: fewer.result(10)) == KafkaError.INVALID_PARTITIONS
    described = when_settled(
        lambda: admin.describe_topics(TopicCollection([name]))[name].result(10),
        lambda answer: len(answer.partitions) == 4,
    )
    assert [partition.id for partition in described.partitions] == [0, 1, 2, 3]
    admin.delete_topics([name])[name].result(10)
    gone = admin.delete_topics([name])[name]
    assert _error(lambda: gone.result(10)) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_confluent_admin_configs(target: Target, topic: str) -> None:
    admin = target.admin()
    change = ConfigEntry("retention.ms", "7777", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(10)
    described = ConfigResource(ResourceType.TOPIC, topic)
    entry = when_settled(
        lambda: admin.describe_configs([described])[described].result(10)["retention.ms"],
        lambda entry: entry.value == "7777",
    )
    assert (entry.value, entry.is_default, entry.is_read_only) == ("7777", False, False)


def test_confluent_admin_offsets_and_deletion_of_records(target: Target) -> None:
    admin = target.admin()
    topic = target.create_topic(configs=KEEP_FOREVER)
    write_confluent(target, topic, [Message(b"x", timestamp_ms=1000 + number) for number in range(10)])
    partition = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec) -> int:
        return admin.list_offsets({partition: spec})[partition].result(10).offset

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 10
    assert offset(OffsetSpec.max_timestamp()) == 9
    assert offset(OffsetSpec.for_timestamp(1004)) == 4
    deleted = admin.delete_records([TopicPartition(topic, 0, 6)])[partition].result(10)
    assert deleted.low_watermark == 6
    assert offset(OffsetSpec.earliest()) == 6
    beyond = admin.delete_records([TopicPartition(topic, 0, 11)])[partition]
    assert _error(lambda: beyond.result(10)) == KafkaError.OFFSET_OUT_OF_RANGE
    assert [message.offset for message in read_confluent(target, topic, 4, offset=6)] == [6, 7, 8, 9]


def test_confluent_admin_describes_the_cluster(target: Target) -> None:
    admin = target.admin()
    cluster = admin.describe_cluster().result(10)
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [target.bootstrap_servers]
    assert cluster.controller.id == target.node_id
    assert len(cluster.cluster_id) == 22


def test_kafka_python_admin_and_offsets_by_time(target: Target) -> None:
    admin = KafkaAdminClient(bootstrap_servers=target.bootstrap_servers)
    name = unique_name()
    try:
        new = KafkaPythonNewTopic(
            name=name, num_partitions=2, replication_factor=1, topic_configs=KEEP_FOREVER
        )
        admin.create_topics([new])
        with pytest.raises(TopicAlreadyExistsError):
            admin.create_topics([new])
        await_leaders(target.admin(), name, 2)
        assert name in admin.list_topics()
        with pytest.raises(InvalidPartitionsError):
            admin.create_partitions({name: 1})
        write_kafka_python(
            target, name, [Message(b"x", timestamp_ms=1000 + n) for n in range(5)], partition=1
        )
        consumer = KafkaConsumer(bootstrap_servers=target.bootstrap_servers)
        partition = KafkaPythonTopicPartition(name, 1)
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 5}
        assert consumer.offsets_for_times({partition: 1003})[partition].offset == 3
        assert consumer.offsets_for_times({partition: 9999}) == {partition: None}
        consumer.close()
        admin.delete_topics([name])
        with pytest.raises(UnknownTopicOrPartitionError):
            admin.delete_topics([name])
    finally:
        admin.close()
