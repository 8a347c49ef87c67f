"""Markers that could not be written at once: they end their own transaction, and never a later one."""

import asyncio

from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.testing.in_process import InProcessBroker
from tests.broker.harness import Client, create_topic, fetch, lose_follower, unique_name
from tests.broker.transactional import Producer, committed_values

OLDER_PROTOCOL = 4  # of EndTxn: the next transaction has the same epoch


async def test_a_late_marker_leaves_the_next_transaction_alone(
    broker: InProcessBroker, client: Client
) -> None:
    """Its topic is deleted and made again meanwhile, and the producer has gone on in it."""
    name = unique_name("topic")
    topic = await create_topic(client, name, configs={"min.insync.replicas": "2"})
    producer = await Producer(client, unique_name("id")).init()
    assert await producer.add(topic, 0) == [0]
    assert await producer.send(topic, b"first", version=11) == 0
    await lose_follower(broker, topic)
    assert await producer.end(True, OLDER_PROTOCOL) == 0
    assert (await producer.describe()).transaction_state == "PrepareCommit"

    await client.call(DeleteTopicsRequest([DeleteTopicState(name)], timeout_ms=10_000))
    while (await producer.describe()).transaction_state != "CompleteCommit":
        await asyncio.sleep(0.005)
    topic = await create_topic(client, name)
    assert await producer.add(topic, 0) == [0]
    assert await producer.send(topic, b"second", version=11) == 0
    while broker.node.transactions._markers._timers:  # the marker will be tried once more
        await asyncio.sleep(0.005)
    assert (await fetch(client, topic, isolation_level=1)).last_stable_offset == 0
    assert await producer.end(False, OLDER_PROTOCOL) == 0
    assert await committed_values(client, topic) == []
