"""Produce: acks, results per partition, idempotence, timestamps, and the fsync before the answer."""

import asyncio
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from mainstem.protocol.apis.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.protocol.errors import ErrorCode
from mainstem.records.batch import CONTROL_MASK, TRANSACTIONAL_MASK
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect
from tests.broker.harness import (
    API_VERSIONS,
    PRODUCE_BY_NAME,
    Client,
    Topic,
    ask,
    batch,
    create_topic,
    eventually,
    fetch,
    fetch_request,
    forget_follower,
    header_of,
    lose_follower,
    partition_of,
    produce,
    produce_request,
    unique_name,
    values_of,
    waiting_fetches,
)
from tests.support.failing_files import FailingFiles

FLUSH_EACH = {"flush.messages": "1"}


class Disk:
    """Holds back fsync in the broker's threads until a test lets it go on."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.waiting = 0
        self.error: OSError | None = None

    def fsync(self, fd: int) -> None:
        self.waiting += 1
        self.open.wait(30)
        self.waiting -= 1
        if self.error is not None:
            raise self.error
        os.fsync(fd)

    async def is_awaited(self) -> None:
        await eventually(lambda: self.waiting > 0, "an fsync is under way")


@pytest.fixture
def disk(broker: InProcessBroker) -> Iterator[Disk]:
    disk = Disk()
    assert isinstance(broker.files, FailingFiles)
    with broker.files.exchanged(fsync=disk.fsync):
        yield disk
        disk.open.set()


@pytest.mark.parametrize("version", range(3, 14))
async def test_every_version_appends_and_answers_the_offset(client: Client, version: int) -> None:
    topic = await create_topic(client)
    for acks, expected in ((1, 0), (-1, 2)):
        request = produce_request(topic, {0: batch(b"a", b"b")}, acks)
        response = await client.call(request, version)
        (answered,) = response.responses
        assert answered.name == (topic.name if version < 13 else "")
        assert answered.topic_id == (topic.topic_id if version >= 13 else bytes(16))
        (result,) = answered.partition_responses
        assert (result.error_code, result.base_offset, result.log_append_time_ms) == (0, expected, -1)
    assert values_of((await fetch(client, topic)).records) == [b"a", b"b"] * 2


async def test_acks_0_gets_no_answer_and_the_connection_goes_on(client: Client) -> None:
    topic = await create_topic(client)
    for value in (b"1", b"2", b"3"):
        client.send(produce_request(topic, {0: batch(value)}, acks=0), expect_response=False)
    assert values_of((await fetch(client, topic)).records) == [b"1", b"2", b"3"]


async def test_an_error_under_acks_0_closes_the_connection(client: Client, broker: InProcessBroker) -> None:
    topic = await create_topic(client)
    async with await Client.connect(broker.port) as silent:
        request = produce_request(topic, {0: batch(b"fine"), 7: batch(b"no such partition")}, acks=0)
        silent.send(request, expect_response=False)
        assert await silent.is_closed_by_broker()
    assert values_of((await fetch(client, topic)).records) == [b"fine"]


@pytest.mark.parametrize("acks", [2, -2, 32767, -32768])
async def test_other_acks_are_refused_for_every_partition(client: Client, acks: int) -> None:
    topic = await create_topic(client, partitions=2)
    response = await client.call(produce_request(topic, {0: batch(b"a"), 1: batch(b"b")}, acks))
    results = response.responses[0].partition_responses
    assert [r.error_code for r in results] == [ErrorCode.INVALID_REQUIRED_ACKS] * 2
    assert (await fetch(client, topic)).high_watermark == 0


async def test_unknown_topics_ids_and_partitions_are_named_as_such(client: Client) -> None:
    topic = await create_topic(client)
    missing = Topic("missing", bytes(15) + b"\1")
    by_name = await client.call(produce_request(missing, {0: batch(b"v")}), PRODUCE_BY_NAME)
    by_id = await client.call(produce_request(missing, {0: batch(b"v")}))
    no_partition = await client.call(produce_request(topic, {1: batch(b"v")}))
    negative = await client.call(produce_request(topic, {-1: batch(b"v")}))
    codes = [
        r.responses[0].partition_responses[0].error_code for r in (by_name, by_id, no_partition, negative)
    ]
    assert codes == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


async def test_every_partition_of_a_request_has_its_own_result(client: Client) -> None:
    topic, other = await create_topic(client, partitions=3), await create_topic(client)
    corrupt = bytearray(batch(b"corrupt"))
    corrupt[-1] ^= 1
    request = produce_request(topic, {0: batch(b"a"), 1: bytes(corrupt), 2: None, 3: batch(b"x")})
    request.topic_data += produce_request(other, {0: batch(b"b")}).topic_data
    first, second = (await client.call(request)).responses
    assert [r.error_code for r in first.partition_responses] == [
        ErrorCode.NONE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert all(r.error_message for r in first.partition_responses[1:])
    assert [r.base_offset for r in first.partition_responses] == [0, -1, -1, -1]
    assert second.partition_responses[0].error_code == 0
    assert values_of((await fetch(client, topic)).records) == [b"a"]
    assert (await fetch(client, topic, partition=1)).high_watermark == 0


async def test_others_are_served_while_a_request_begins_very_many_partitions(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    many = range(1_000)
    topic = await create_topic(client, partitions=len(many))
    other = await connect(broker)
    client.send(produce_request(topic, {index: batch(b"1") for index in many}))
    client.send(produce_request(topic, {index: batch(b"2") for index in many}))
    order = [asyncio.create_task(client.receive()), asyncio.create_task(other.call(API_VERSIONS))]
    first, _ = await asyncio.wait(order, return_when=asyncio.FIRST_COMPLETED)
    assert first == {order[1]}
    for expected, response in enumerate((await order[0], await client.receive())):
        results = response.responses[0].partition_responses
        assert [result.index for result in results] == list(many)
        assert {(result.error_code, result.base_offset) for result in results} == {(0, expected)}


async def test_the_rest_of_a_large_request_without_acks_is_appended_when_its_client_is_gone(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic = await create_topic(client, partitions=500)
    silent = await connect(broker)
    request = produce_request(topic, {index: batch(b"1") for index in range(500)}, acks=0)
    silent.send(request, expect_response=False)
    silent.writer.write_eof()
    assert await silent.is_closed_by_broker()
    log_ends = [partition_of(broker, topic, index).log.log_end_offset for index in range(500)]
    assert log_ends == [1] * 500


async def test_a_produce_of_nothing_is_answered_with_nothing(client: Client) -> None:
    assert (await client.call(ProduceRequest(acks=1))).responses == []


@pytest.mark.parametrize("records", [b"", b"\0", bytes(60), bytes(61), bytes(1000)], ids=len)
async def test_garbage_instead_of_a_batch_is_refused(client: Client, records: bytes) -> None:
    topic = await create_topic(client)
    response = await client.call(produce_request(topic, {0: records}))
    expected = ErrorCode.CORRUPT_MESSAGE if len(records) > 1 else ErrorCode.INVALID_RECORD
    assert response.responses[0].partition_responses[0].error_code == expected
    assert (await fetch(client, topic)).high_watermark == 0


async def test_what_only_the_broker_may_write_is_refused(client: Client) -> None:
    topic = await create_topic(client)
    two = batch(b"a") + batch(b"b")
    for records in (
        batch(b"v", attributes=CONTROL_MASK),
        batch(b"v", attributes=TRANSACTIONAL_MASK, producer_id=5, producer_epoch=0, base_sequence=0),
        batch(b"v", base_offset=3),
        two,
    ):
        response = await client.call(produce_request(topic, {0: records}))
        assert response.responses[0].partition_responses[0].error_code > 0
    assert (await fetch(client, topic)).high_watermark == 0


async def test_a_batch_above_max_message_bytes_is_refused(client: Client) -> None:
    topic = await create_topic(client, configs={"max.message.bytes": "1000"})
    assert (await produce(client, topic, bytes(1001))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert (await produce(client, topic, bytes(900))).error_code == 0


async def test_acks_all_needs_min_insync_replicas_and_acks_1_does_not(
    client: Client, broker: InProcessBroker
) -> None:
    topic = await create_topic(client, configs={"min.insync.replicas": "2"})
    await lose_follower(broker, topic)
    refused = await produce(client, topic, b"all", acks=-1)
    assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert refused.error_message == (
        f"{topic.name}-0 has 1 replicas in sync and needs 2 (min.insync.replicas is 2)"
    )
    assert (await produce(client, topic, b"one", acks=1)).error_code == 0
    assert (await fetch(client, topic)).high_watermark == 0
    await forget_follower(broker, topic)
    assert values_of((await fetch(client, topic)).records) == [b"one"]


async def test_acks_all_needs_no_more_replicas_than_there_are(client: Client) -> None:
    topic = await create_topic(client, configs={"min.insync.replicas": "3"})
    assert (await produce(client, topic, b"v", acks=-1)).error_code == 0
    assert values_of((await fetch(client, topic)).records) == [b"v"]


async def test_under_log_append_time_the_broker_stamps_and_says_so(client: Client) -> None:
    topic = await create_topic(client, configs={"message.timestamp.type": "LogAppendTime"})
    for _ in range(3):  # the later ones take the short way
        result = await produce(client, topic, b"v", timestamp=1_000_000)
        assert result.log_append_time_ms > 1_600_000_000_000
    header = header_of((await fetch(client, topic)).records)
    assert header.max_timestamp > 1_600_000_000_000
    assert header.attributes & 8


# ---- the short way of repeated small produces


async def test_repeated_produces_see_every_change_of_the_topic(client: Client, connect: Connect) -> None:
    topic = await create_topic(client)
    for expected in range(5):
        assert (await produce(client, topic, b"v")).base_offset == expected
    await client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic.name)], timeout_ms=1000))
    assert (await produce(client, topic, b"v")).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    again = await create_topic(client, topic.name)
    request = produce_request(again, {0: batch(b"v")})
    for expected in range(3):
        response = await client.call(request, PRODUCE_BY_NAME)
        assert response.responses[0].partition_responses[0].base_offset == expected


async def test_repeated_produces_in_changing_shapes_are_all_right(client: Client) -> None:
    topics = [await create_topic(client, unique_name("t" * n), partitions=2) for n in (1, 2, 9)]
    expected: dict[tuple[str, int], int] = {}
    for turn in range(120):
        topic, index = topics[turn % 3], turn % 2
        version = (3, 5, 8, 9, 12, 13)[turn % 6]
        value = bytes(turn * turn % 400)
        response = await client.call(produce_request(topic, {index: batch(value)}, acks=-1), version)
        (result,) = response.responses[0].partition_responses
        assert (result.error_code, result.index) == (0, index)
        assert result.base_offset == expected.get((topic.name, index), 0)
        expected[topic.name, index] = result.base_offset + 1


async def test_a_refused_batch_among_repeated_ones_has_its_own_error(client: Client) -> None:
    topic = await create_topic(client)
    good = batch(b"0123456789")
    for turn in range(6):
        records = bytearray(good)
        if turn % 2:
            records[-3] ^= 0xFF
        response = await client.call(produce_request(topic, {0: bytes(records)}))
        code = response.responses[0].partition_responses[0].error_code
        assert code == (ErrorCode.CORRUPT_MESSAGE if turn % 2 else ErrorCode.NONE)
    assert (await fetch(client, topic)).high_watermark == 3


# ---- idempotence


async def idempotent(client: Client, topic: Topic, sequence: int, *values: bytes, **options: Any) -> Any:
    options = {"producer_id": 77, "producer_epoch": 0, **options}
    return await produce(client, topic, *values, base_sequence=sequence, **options)


async def test_a_batch_sent_again_is_answered_with_its_first_offset(client: Client) -> None:
    topic = await create_topic(client)
    for sequence in range(7):
        assert (await idempotent(client, topic, sequence, b"%d" % sequence)).base_offset == sequence
    for sequence in range(2, 7):  # the last five are remembered
        again = await idempotent(client, topic, sequence, b"%d" % sequence)
        assert (again.error_code, again.base_offset) == (0, sequence)
    too_old = await idempotent(client, topic, 0, b"0")
    assert too_old.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await fetch(client, topic)).high_watermark == 7


async def test_a_gap_in_the_sequence_is_refused(client: Client) -> None:
    topic = await create_topic(client)
    assert (await idempotent(client, topic, 0, b"a", b"b")).error_code == 0
    gap = await idempotent(client, topic, 3, b"x")
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await idempotent(client, topic, 2, b"c")).base_offset == 2


async def test_an_older_epoch_is_fenced_and_a_newer_one_starts_at_zero(client: Client) -> None:
    topic = await create_topic(client)
    assert (await idempotent(client, topic, 0, b"a", producer_epoch=3)).error_code == 0
    old = await idempotent(client, topic, 1, b"b", producer_epoch=2)
    assert old.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    skipping = await idempotent(client, topic, 5, b"b", producer_epoch=4)
    assert skipping.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await idempotent(client, topic, 0, b"b", producer_epoch=4)).base_offset == 1


async def test_sequences_wrap_from_the_largest_to_zero(client: Client) -> None:
    topic = await create_topic(client)
    largest = 2**31 - 1
    assert (await idempotent(client, topic, largest - 2, b"a", b"b")).error_code == 0
    # The batch itself goes over the border: largest, 0, 1.
    assert (await idempotent(client, topic, largest, b"c", b"d", b"e")).base_offset == 2
    assert (await idempotent(client, topic, 2, b"f")).base_offset == 5
    assert (await idempotent(client, topic, largest, b"c", b"d", b"e")).base_offset == 2


# ---- an fsync before the answer


@pytest.mark.parametrize("acks", [1, -1])
async def test_flush_messages_1_answers_only_after_the_fsync(client: Client, disk: Disk, acks: int) -> None:
    topic = await create_topic(client, configs=FLUSH_EACH)
    disk.open.clear()
    client.send(produce_request(topic, {0: batch(b"v")}, acks))
    answer = asyncio.ensure_future(client.receive())
    await disk.is_awaited()
    assert not answer.done()
    disk.open.set()
    result = (await answer).responses[0].partition_responses[0]
    assert (result.error_code, result.base_offset) == (0, 0)


async def test_what_waits_for_its_fsync_is_not_read_yet(
    client: Client, broker: InProcessBroker, connect: Connect, disk: Disk
) -> None:
    topic = await create_topic(client, configs=FLUSH_EACH)
    reader = await connect(broker)
    reader.send(fetch_request({topic: [ask()]}, max_wait_ms=60_000, min_bytes=1))
    await eventually(lambda: waiting_fetches(broker, topic) == 1)
    disk.open.clear()
    client.send(produce_request(topic, {0: batch(b"v")}))
    await disk.is_awaited()
    assert (await fetch(await connect(broker), topic)).high_watermark == 0
    disk.open.set()
    assert values_of((await reader.receive()).responses[0].partitions[0].records) == [b"v"]
    assert (await client.receive()).responses[0].partition_responses[0].error_code == 0


async def test_appends_during_an_fsync_share_the_next_one(
    client: Client, broker: InProcessBroker, connect: Connect, disk: Disk
) -> None:
    topic = await create_topic(client, configs=FLUSH_EACH)
    clients = [await connect(broker) for _ in range(10)]
    disk.open.clear()
    client.send(produce_request(topic, {0: batch(b"first")}))
    await disk.is_awaited()
    for one in clients:
        one.send(produce_request(topic, {0: batch(b"later")}))
    await eventually(lambda: partition_of(broker, topic).log.log_end_offset == 11)
    disk.open.set()
    results = [await one.receive() for one in (client, *clients)]
    offsets = sorted(r.responses[0].partition_responses[0].base_offset for r in results)
    assert offsets == list(range(11))
    assert not partition_of(broker, topic).role.ack_waiters.waiting


async def test_a_partition_twice_in_a_request_has_both_answered(client: Client, disk: Disk) -> None:
    topic = await create_topic(client, configs=FLUSH_EACH)
    data = [PartitionProduceData(index=0, records=batch(value)) for value in (b"a", b"b")]
    asked = TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=data)
    disk.open.clear()
    client.send(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[asked]))
    await disk.is_awaited()
    disk.open.set()
    results = (await client.receive()).responses[0].partition_responses
    assert [(r.error_code, r.base_offset) for r in results] == [(0, 0), (0, 1)]


async def test_a_batch_sent_again_during_its_fsync_waits_for_it_too(
    client: Client, broker: InProcessBroker, connect: Connect, disk: Disk
) -> None:
    topic = await create_topic(client, configs=FLUSH_EACH)
    records = [batch(b"v", producer_id=9, producer_epoch=0, base_sequence=sequence) for sequence in range(3)]
    disk.open.clear()
    clients = [await connect(broker) for _ in range(4)]
    for one, sequence in zip(clients, (0, 1, 2, 0), strict=True):
        one.send(produce_request(topic, {0: records[sequence]}))
        await eventually(lambda: partition_of(broker, topic).log.log_end_offset > 0)
    await eventually(lambda: len(partition_of(broker, topic).role.ack_waiters.waiting) == 4)
    disk.open.set()
    results = [(await one.receive()).responses[0].partition_responses[0] for one in clients]
    assert sorted(result.error_code for result in results) == [0, 0, 0, 0]
    assert results[0].base_offset == results[3].base_offset == 0


async def test_an_fsync_that_takes_too_long_times_the_request_out(
    client: Client, broker: InProcessBroker, disk: Disk
) -> None:
    topic = await create_topic(client, configs=FLUSH_EACH)
    disk.open.clear()
    client.send(produce_request(topic, {0: batch(b"v")}, timeout_ms=50))
    result = (await client.receive()).responses[0].partition_responses[0]
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert not partition_of(broker, topic).role.ack_waiters.waiting
    disk.open.set()
    assert (await produce(client, topic, b"next")).base_offset == 1


async def test_a_producer_that_leaves_while_waiting_leaves_no_waiter(
    client: Client, broker: InProcessBroker, disk: Disk
) -> None:
    topic = await create_topic(client, configs=FLUSH_EACH)
    leader = partition_of(broker, topic).role
    disk.open.clear()
    leaving = await Client.connect(broker.port)
    leaving.send(produce_request(topic, {0: batch(b"v")}))
    await eventually(lambda: len(leader.ack_waiters.waiting) == 1)
    await leaving.close()
    await eventually(lambda: not leader.ack_waiters.waiting)
    disk.open.set()
    assert (await produce(client, topic, b"next")).base_offset == 1


async def test_deleting_a_topic_answers_the_produces_that_wait_on_it(
    client: Client, broker: InProcessBroker, connect: Connect, disk: Disk
) -> None:
    topic = await create_topic(client, configs=FLUSH_EACH)
    producer = await connect(broker)
    disk.open.clear()
    producer.send(produce_request(topic, {0: batch(b"v")}, timeout_ms=60_000))
    await disk.is_awaited()
    client.send(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic.name)], timeout_ms=1000))
    await asyncio.sleep(0)
    disk.open.set()
    await client.receive()
    code = (await producer.receive()).responses[0].partition_responses[0].error_code
    assert code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def test_flush_messages_n_demands_an_fsync_every_n_messages(client: Client, disk: Disk) -> None:
    topic = await create_topic(client, configs={"flush.messages": "3"})
    disk.open.clear()
    assert (await produce(client, topic, b"1")).error_code == 0
    assert (await produce(client, topic, b"2")).error_code == 0
    client.send(produce_request(topic, {0: batch(b"3")}))
    await disk.is_awaited()
    disk.open.set()
    assert (await client.receive()).responses[0].partition_responses[0].base_offset == 2
