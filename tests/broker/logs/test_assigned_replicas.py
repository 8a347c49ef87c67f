"""Replicas that are assigned to a broker, to others, and to one after the other."""

from pathlib import Path

from mainstem.protocol.apis.k01_fetch import PartitionData
from mainstem.protocol.apis.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mainstem.protocol.apis.k03_metadata import MetadataRequest, MetadataRequestTopic
from mainstem.protocol.errors import ErrorCode
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import (
    Client,
    Topic,
    ask,
    create_topic,
    elect,
    eventually,
    fetch,
    fetch_request,
    partition_of,
    produce,
    values_of,
    waiting_fetches,
)

OTHER = 2


def folder(broker: InProcessBroker, topic: Topic, index: int = 0) -> Path:
    return broker.data_dir / f"{topic.name}-{index}"


async def give_away(broker: InProcessBroker, topic: Topic, index: int = 0) -> None:
    """Only another broker has the partition from now on."""
    await elect(broker, topic.name, index, OTHER, replicas=[OTHER], isr=[OTHER])


async def test_a_partition_of_another_broker_has_no_log_here_and_is_not_served(
    client: Client, broker: InProcessBroker
) -> None:
    topic = await create_topic(client, partitions=2)
    await produce(client, topic, b"v", partition=1)
    await give_away(broker, topic, 1)
    assert not folder(broker, topic, 1).exists()
    not_here = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (await produce(client, topic, b"v", partition=1)).error_code == not_here
    assert (await fetch(client, topic, partition=1)).error_code == not_here
    latest = ListOffsetsTopic(topic.name, [ListOffsetsPartition(1, -1, -1)])
    listed = await client.call(ListOffsetsRequest(topics=[latest]))
    assert listed.topics[0].partitions[0].error_code == not_here
    assert (await produce(client, topic, b"v", partition=0)).error_code == 0
    asked = MetadataRequestTopic(topic_id=topic.topic_id, name=topic.name)
    described = (await client.call(MetadataRequest([asked]))).topics[0].partitions[1]
    assert (described.leader_id, described.replica_nodes) == (-1, [OTHER]), "nobody knows where it is"


async def test_a_partition_that_comes_begins_anew(client: Client, broker: InProcessBroker) -> None:
    topic = await create_topic(client)
    await produce(client, topic, b"given away")
    await give_away(broker, topic)
    await elect(broker, topic.name, replicas=[1], isr=[1])
    assert (await produce(client, topic, b"new")).base_offset == 0
    assert values_of((await fetch(client, topic)).records) == [b"new"]
    assert partition_of(broker, topic).leader_epoch == 2


async def test_a_fetch_that_waits_on_a_partition_that_goes_is_answered(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic = await create_topic(client, partitions=2)
    reader = await connect(broker)
    reader.send(fetch_request({topic: [ask(0), ask(1)]}, max_wait_ms=600_000, min_bytes=1))
    await eventually(lambda: waiting_fetches(broker, topic) == 1)
    await give_away(broker, topic)
    gone, stays = (await reader.receive()).responses[0].partitions
    assert (gone.error_code, stays.error_code) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)


async def test_the_high_watermark_begins_where_it_was_written_down(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker()
    client = await connect(broker)
    topic = await create_topic(client, configs={"min.insync.replicas": "2"})
    await produce(client, topic, b"committed", acks=1)
    await elect(broker, topic.name, replicas=[1, OTHER], isr=[1, OTHER])
    assert (await produce(client, topic, b"not yet", acks=1)).error_code == 0
    await broker.restart()
    partition = partition_of(broker, topic)
    assert (partition.high_watermark, partition.log.log_end_offset) == (1, 2)
    data: PartitionData = await fetch(await connect(broker), topic)
    assert (data.high_watermark, values_of(data.records)) == (1, [b"committed"])
