"""Readers of committed records: what Fetch and ListOffsets give them, and what DescribeProducers shows."""

import asyncio
from typing import Any

import pytest

from mainstem.protocol.apis.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mainstem.protocol.apis.k61_describe_producers import DescribeProducersRequest, TopicRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.records.batch import TRANSACTIONAL_MASK
from mainstem.testing.in_process import InProcessBroker
from tests.broker.harness import (
    Client,
    Topic,
    ask,
    batch,
    create_topic,
    eventually,
    fetch,
    fetch_request,
    partition_of,
    produce,
    values_of,
    waiting_fetches,
)

COMMITTED = 1
FOR_EVER = 600_000


def write(broker: InProcessBroker, topic: Topic, producer_id: int, *values: bytes) -> None:
    """Append the next batch of a producer's transaction, as the transaction's coordinator allows it."""
    partition = partition_of(broker, topic)
    entry = partition.log.producers.state.entries.get(producer_id)
    epoch, sequence = (entry.epoch, entry.next_sequence) if entry else (0, 0)
    data = batch(
        *values,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=TRANSACTIONAL_MASK,
    )
    guard = partition.needs_verification(producer_id, epoch, sequence)
    partition.append(bytearray(data), broker.node.clock.now_ms(), guard=guard)


def finish(broker: InProcessBroker, topic: Topic, producer_id: int, *, commit: bool) -> None:
    partition = partition_of(broker, topic)
    epoch = partition.log.producers.state.entries[producer_id].epoch + 1
    partition.append_marker(producer_id, epoch, 0, commit, broker.node.clock.now_ms())


def aborted_of(data: Any) -> list[tuple[int, int]]:
    return [(entry.producer_id, entry.first_offset) for entry in data.aborted_transactions]


async def test_a_fetch_ends_at_the_last_stable_offset(client: Client, broker: InProcessBroker) -> None:
    topic = await create_topic(client)
    await produce(client, topic, b"plain")
    write(broker, topic, 1, b"open")
    await produce(client, topic, b"behind")
    data = await fetch(client, topic, isolation_level=COMMITTED)
    assert values_of(data.records) == [b"plain"]
    assert (data.high_watermark, data.last_stable_offset) == (3, 1)
    assert data.aborted_transactions == []
    everything = await fetch(client, topic)
    assert values_of(everything.records) == [b"plain", b"open", b"behind"]
    assert (everything.high_watermark, everything.last_stable_offset) == (3, 1)
    assert everything.aborted_transactions is None
    beyond = await fetch(client, topic, offset=2, isolation_level=COMMITTED)
    assert (beyond.error_code, values_of(beyond.records)) == (0, [])


@pytest.mark.parametrize("version", [4, 11, 12, 13, 18])
async def test_a_fetch_names_the_aborted_transactions_in_it(
    client: Client, broker: InProcessBroker, version: int
) -> None:
    topic = await create_topic(client)
    write(broker, topic, 1, b"a")
    write(broker, topic, 2, b"b")
    finish(broker, topic, 1, commit=False)
    finish(broker, topic, 2, commit=True)
    write(broker, topic, 3, b"c")
    finish(broker, topic, 3, commit=False)
    request = fetch_request({topic: [ask()]}, isolation_level=COMMITTED)
    (data,) = (await client.call(request, version)).responses[0].partitions
    assert aborted_of(data) == [(1, 0), (3, 4)]
    assert data.last_stable_offset == 6
    later = await fetch(client, topic, offset=3, isolation_level=COMMITTED)
    assert aborted_of(later) == [(3, 4)]
    first_batch = await fetch(client, topic, partition_max_bytes=1, isolation_level=COMMITTED)
    assert aborted_of(first_batch) == [(1, 0)]


async def test_a_waiting_fetch_is_answered_when_the_transaction_ends(
    client: Client, broker: InProcessBroker
) -> None:
    topic = await create_topic(client)
    write(broker, topic, 1, b"a")
    client.send(fetch_request({topic: [ask()]}, isolation_level=COMMITTED, max_wait_ms=FOR_EVER, min_bytes=1))
    await eventually(lambda: waiting_fetches(broker, topic) == 1, "the fetch is parked")
    answer = asyncio.ensure_future(client.receive())
    write(broker, topic, 1, b"b")
    for _ in range(10):
        await asyncio.sleep(0)
    assert not answer.done(), "more of an open transaction is nothing to read"
    finish(broker, topic, 1, commit=True)
    data = (await answer).responses[0].partitions[0]
    assert values_of(data.records)[:2] == [b"a", b"b"]
    assert data.last_stable_offset == 3


async def test_minimum_bytes_count_what_may_be_read(client: Client, broker: InProcessBroker) -> None:
    topic = await create_topic(client)
    await produce(client, topic, b"small")
    write(broker, topic, 1, bytes(5000))
    client.send(
        fetch_request({topic: [ask()]}, isolation_level=COMMITTED, max_wait_ms=FOR_EVER, min_bytes=1000)
    )
    await eventually(lambda: waiting_fetches(broker, topic) == 1, "the small record is not enough")
    finish(broker, topic, 1, commit=False)
    data = (await client.receive()).responses[0].partitions[0]
    assert aborted_of(data) == [(1, 1)]


async def test_list_offsets_ends_at_the_last_stable_offset(client: Client, broker: InProcessBroker) -> None:
    topic = await create_topic(client)
    await produce(client, topic, b"plain", timestamp=broker.node.clock.now_ms() - 5000)
    write(broker, topic, 1, b"open")

    async def offset(timestamp: int, level: int) -> int:
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topics = [ListOffsetsTopic(name=topic.name, partitions=[asked])]
        response = await client.call(ListOffsetsRequest(replica_id=-1, topics=topics, isolation_level=level))
        found: int = response.topics[0].partitions[0].offset
        return found

    latest, largest_timestamp, by_time = -1, -3, broker.node.clock.now_ms() - 1000
    assert [await offset(timestamp, 0) for timestamp in (latest, largest_timestamp, by_time)] == [2, 1, 1]
    assert [await offset(timestamp, COMMITTED) for timestamp in (latest, largest_timestamp, by_time)] == [
        1,
        -1,
        -1,
    ]
    finish(broker, topic, 1, commit=True)
    assert [await offset(timestamp, COMMITTED) for timestamp in (latest, by_time)] == [3, 1]


async def test_describe_producers_lists_what_the_partition_remembers(
    client: Client, broker: InProcessBroker
) -> None:
    topic = await create_topic(client)
    before_ms = broker.node.clock.now_ms()
    await produce(client, topic, b"plain")
    write(broker, topic, 7, b"a", b"b")
    write(broker, topic, 8, b"c")
    finish(broker, topic, 8, commit=True)
    asked = [
        TopicRequest(name=topic.name, partition_indexes=[0, 9]),
        TopicRequest(name="no-such-topic", partition_indexes=[0]),
        TopicRequest(name="no/such/name", partition_indexes=[0]),
    ]
    known, unknown, invalid = (await client.call(DescribeProducersRequest(topics=asked))).topics
    described, missing = known.partitions
    assert (missing.partition_index, missing.error_code) == (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert unknown.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert invalid.partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    with_open, ended = described.active_producers
    assert (with_open.producer_id, with_open.producer_epoch, with_open.last_sequence) == (7, 0, 1)
    assert (with_open.coordinator_epoch, with_open.current_txn_start_offset) == (-1, 1)
    assert (ended.producer_id, ended.producer_epoch, ended.last_sequence) == (8, 1, -1)
    assert (ended.coordinator_epoch, ended.current_txn_start_offset) == (0, -1)
    assert all(producer.last_timestamp >= before_ms for producer in described.active_producers)
