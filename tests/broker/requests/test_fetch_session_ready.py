"""What a fetch session looks at: only partitions that are ready; and how long it is subscribed to them."""

import asyncio
from typing import Any

import pytest

from mainstem.broker.logs.partition import Partition
from mainstem.protocol.apis.k01_fetch import ForgottenTopic
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.protocol.errors import ErrorCode
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker, Rules
from tests.broker.harness import (
    Client,
    Topic,
    ask,
    batch,
    create_topic,
    delete_records,
    eventually,
    fetch_request,
    partition_of,
    produce,
    values_of,
    waiting_fetches,
)
from tests.broker.requests.test_fetch_session import CLOSE, NEW, open_session, partitions_of
from tests.broker.transactional import Producer

FOR_EVER = 600_000


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Partition]:
    """The partitions that are read, as often as they are."""
    read: list[Partition] = []
    real = Partition.read

    def counted(partition: Partition, *args: Any, **options: Any) -> Any:
        read.append(partition)
        return real(partition, *args, **options)

    monkeypatch.setattr(Partition, "read", counted)
    return read


def indexes(reads: list[Partition]) -> list[int]:
    found = [partition.index for partition in reads]
    reads.clear()
    return found


async def test_an_answer_costs_what_changed_and_not_what_the_session_holds(
    client: Client, broker: InProcessBroker, connect: Connect, reads: list[Partition]
) -> None:
    topic = await create_topic(client, partitions=200)
    reader = await connect(broker)
    session = await open_session(reader, topic, *(ask(index) for index in range(200)))
    reads.clear()
    await produce(client, topic, b"a", partition=7)
    answer = await reader.call(fetch_request(session_id=session, session_epoch=1))
    assert set(partitions_of(answer)) == {7}
    assert indexes(reads) == [7]
    parked = fetch_request(
        {topic: [ask(7, offset=1)]}, session_id=session, session_epoch=2, max_wait_ms=FOR_EVER, min_bytes=1
    )
    reader.send(parked)
    await eventually(lambda: waiting_fetches(broker, topic, 150) == 1)
    assert indexes(reads) == [7]
    await produce(client, topic, b"b", partition=150)
    assert set(partitions_of(await reader.receive())) == {150}
    assert indexes(reads) == [150]
    timed_out = fetch_request(
        {topic: [ask(150, offset=1)]}, session_id=session, session_epoch=3, max_wait_ms=10, min_bytes=1
    )
    assert partitions_of(await reader.call(timed_out)) == {}
    assert indexes(reads) == [150], "at its end: there is no need to look again"


async def test_data_that_had_no_room_is_read_when_there_is_some_again(
    client: Client, reads: list[Partition]
) -> None:
    topic = await create_topic(client, partitions=4)
    size = len(batch(bytes(1000)))
    session = await open_session(client, topic, *(ask(index) for index in range(4)))
    for partition in (0, 1, 2):
        await produce(client, topic, bytes(1000), partition=partition)
    first = await client.call(fetch_request(session_id=session, session_epoch=1, max_bytes=size))
    told = {index: (data.high_watermark, len(values_of(data.records))) for index, data in
            partitions_of(first).items()}  # fmt: skip
    assert told == {0: (1, 1), 1: (1, 0), 2: (1, 0)}, "of all that moved, the watermark is told"
    reads.clear()
    await produce(client, topic, bytes(1000), partition=2)
    asked = {topic: [ask(0, offset=1)]}
    second = await client.call(fetch_request(asked, session_id=session, session_epoch=2, max_bytes=size))
    told = {index: (data.high_watermark, len(values_of(data.records))) for index, data in
            partitions_of(second).items()}  # fmt: skip
    assert told == {1: (1, 1), 2: (2, 0)}
    assert sorted(indexes(reads)) == [0, 1, 2]
    asked = {topic: [ask(1, offset=1)]}
    third = await client.call(fetch_request(asked, session_id=session, session_epoch=3, max_bytes=size))
    assert {index: len(values_of(data.records)) for index, data in partitions_of(third).items()} == {2: 1}
    fourth = await client.call(fetch_request(session_id=session, session_epoch=4))
    assert {index: len(values_of(data.records)) for index, data in partitions_of(fourth).items()} == {2: 2}


async def test_a_partition_is_read_again_when_it_is_asked_for_from_elsewhere(client: Client) -> None:
    topic = await create_topic(client)
    await produce(client, topic, b"a")
    session = await open_session(client, topic, ask(0, offset=1))
    assert partitions_of(await client.call(fetch_request(session_id=session, session_epoch=1))) == {}
    again = fetch_request({topic: [ask(0)]}, session_id=session, session_epoch=2)
    (data,) = partitions_of(await client.call(again)).values()
    assert values_of(data.records) == [b"a"]


async def test_a_moved_log_start_alone_is_a_change(client: Client) -> None:
    topic = await create_topic(client)
    await produce(client, topic, b"a", b"b")
    session = await open_session(client, topic, ask(0, offset=2))
    await delete_records(client, topic, 1)
    moved = await client.call(fetch_request(session_id=session, session_epoch=1))
    assert [data.log_start_offset for data in partitions_of(moved).values()] == [1]
    assert partitions_of(await client.call(fetch_request(session_id=session, session_epoch=2))) == {}


async def test_the_end_of_a_transaction_is_news_for_a_session_of_committed_records(client: Client) -> None:
    topic = await create_topic(client)
    producer = await Producer(client, f"reader-of-{topic.name}").init()
    assert await producer.send(topic, b"a") == 0
    request = fetch_request({topic: [ask(0)]}, session_epoch=NEW, isolation_level=1)
    session = (await client.call(request)).session_id
    waiting = fetch_request(session_id=session, session_epoch=1, isolation_level=1)
    assert partitions_of(await client.call(waiting)) == {}
    assert await producer.end(True) == 0
    answer = await client.call(fetch_request(session_id=session, session_epoch=2, isolation_level=1))
    (data,) = partitions_of(answer).values()
    assert data.last_stable_offset == 2
    assert values_of(data.records)[0] == b"a"


async def test_a_session_whose_isolation_level_changes_is_read_anew(client: Client) -> None:
    topic = await create_topic(client)
    producer = await Producer(client, f"reader-of-{topic.name}").init()
    assert await producer.send(topic, b"a") == 0
    request = fetch_request({topic: [ask(0)]}, session_epoch=NEW, isolation_level=1)
    response = await client.call(request)
    assert [values_of(data.records) for data in partitions_of(response).values()] == [[]]
    uncommitted = fetch_request(session_id=response.session_id, session_epoch=1)
    (data,) = partitions_of(await client.call(uncommitted)).values()
    assert values_of(data.records) == [b"a"]
    assert await producer.end(False) == 0


async def test_a_session_is_told_when_the_rules_of_the_authorizer_change(
    client: Client, broker: InProcessBroker, rules: Rules
) -> None:
    topic = await create_topic(client, partitions=2)
    session = await open_session(client, topic, ask(0), ask(1))
    rules.denied = True
    rules.generation += 1
    denied = partitions_of(await client.call(fetch_request(session_id=session, session_epoch=1)))
    assert {data.error_code for data in denied.values()} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert len(denied) == 2
    rules.denied = False
    allowed = partitions_of(await client.call(fetch_request(session_id=session, session_epoch=2)))
    assert [data.error_code for data in allowed.values()] == [0, 0]


async def test_a_parked_fetch_of_a_session_counts_everything_that_comes_until_min_bytes(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic = await create_topic(client, partitions=3)
    size = len(batch(bytes(1000)))
    reader = await connect(broker)
    session = await open_session(reader, topic, ask(0), ask(1), ask(2))
    reader.send(fetch_request(session_id=session, session_epoch=1, max_wait_ms=FOR_EVER, min_bytes=3 * size))
    await eventually(lambda: waiting_fetches(broker, topic) == 1)
    answer = asyncio.ensure_future(reader.receive())
    for partition in (1, 0):
        await produce(client, topic, bytes(1000), partition=partition)
        assert not answer.done()
    await produce(client, topic, bytes(1000), partition=1)
    found = {index: len(values_of(data.records)) for index, data in partitions_of(await answer).items()}
    assert found == {0: 1, 1: 2}


# ---- who is subscribed


def subscriptions(broker: InProcessBroker, topic: Topic, count: int = 1) -> list[int]:
    return [len(partition_of(broker, topic, index).subscribers) for index in range(count)]


async def test_a_session_is_subscribed_to_what_it_holds_until_it_is_forgotten_or_closed(
    client: Client, broker: InProcessBroker
) -> None:
    topic = await create_topic(client, partitions=3)
    session = await open_session(client, topic, ask(0), ask(1))
    assert subscriptions(broker, topic, 3) == [1, 1, 0]
    forgotten = ForgottenTopic(topic=topic.name, topic_id=topic.topic_id, partitions=[0])
    request = fetch_request(
        {topic: [ask(2)]}, session_id=session, session_epoch=1, forgotten_topics_data=[forgotten]
    )
    await client.call(request)
    assert subscriptions(broker, topic, 3) == [0, 1, 1]
    await produce(client, topic, b"a", partition=1)
    assert subscriptions(broker, topic, 3) == [0, 0, 1], "who was told and did not look costs no append"
    await client.call(fetch_request(session_id=session, session_epoch=2))
    assert subscriptions(broker, topic, 3) == [0, 1, 1]
    await client.call(fetch_request({topic: [ask(1)]}, session_id=session, session_epoch=CLOSE))
    assert subscriptions(broker, topic, 3) == [0, 0, 0]


async def test_a_session_that_is_replaced_or_evicted_leaves_no_subscription(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker({"max.incremental.fetch.session.cache.slots": 1})
    client = await connect(broker)
    topic, other = await create_topic(client), await create_topic(client)
    first = await open_session(client, topic, ask(0))
    replacing = fetch_request({other: [ask(0)]}, session_id=first, session_epoch=NEW)
    assert (await client.call(replacing)).session_id > 0
    assert (subscriptions(broker, topic), subscriptions(broker, other)) == ([0], [1])
    broker.node.fetch_sessions._eviction_ms = 0
    await open_session(client, topic, ask(0))
    assert (subscriptions(broker, topic), subscriptions(broker, other)) == ([1], [0])


async def test_a_fetch_outside_of_a_session_is_subscribed_while_it_waits(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic = await create_topic(client)
    await client.call(fetch_request({topic: [ask(0)]}))
    assert subscriptions(broker, topic) == [0]
    reader = await connect(broker)
    reader.send(fetch_request({topic: [ask(0)]}, max_wait_ms=FOR_EVER, min_bytes=1))
    await eventually(lambda: waiting_fetches(broker, topic) == 1)
    await reader.close()
    await eventually(lambda: subscriptions(broker, topic) == [0], "its connection is gone")
    timed_out = fetch_request({topic: [ask(0)]}, max_wait_ms=10, min_bytes=1)
    assert set(partitions_of(await client.call(timed_out))) == {0}
    assert subscriptions(broker, topic) == [0]


async def test_a_session_outlives_its_connection_with_what_moved_meanwhile(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic = await create_topic(client)
    reader = await connect(broker)
    session = await open_session(reader, topic, ask(0))
    reader.send(fetch_request(session_id=session, session_epoch=1, max_wait_ms=FOR_EVER, min_bytes=1))
    await eventually(lambda: waiting_fetches(broker, topic) == 1)
    await reader.close()
    await eventually(lambda: waiting_fetches(broker, topic) == 0)
    await produce(client, topic, b"v")
    (data,) = partitions_of(await client.call(fetch_request(session_id=session, session_epoch=2))).values()
    assert values_of(data.records) == [b"v"]


async def test_a_fetch_that_waits_is_still_answered_when_its_session_is_closed(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic = await create_topic(client)
    reader = await connect(broker)
    session = await open_session(reader, topic, ask(0))
    reader.send(fetch_request(session_id=session, session_epoch=1, max_wait_ms=FOR_EVER, min_bytes=1))
    await eventually(lambda: waiting_fetches(broker, topic) == 1)
    await client.call(fetch_request(session_id=session, session_epoch=CLOSE))
    await produce(client, topic, b"v")
    (data,) = partitions_of(await reader.receive()).values()
    assert values_of(data.records) == [b"v"]
    assert subscriptions(broker, topic) == [0]


async def test_a_deleted_topic_is_let_go_of_by_a_session_that_nobody_uses(
    client: Client, broker: InProcessBroker
) -> None:
    topic = await create_topic(client)
    session = await open_session(client, topic, ask(0))
    deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic.name)], timeout_ms=10_000)
    await client.call(deletion)
    (asked,) = broker.node.fetch_sessions._sessions[session].partitions.values()
    assert asked.found is None
