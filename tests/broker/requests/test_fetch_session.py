"""Incremental fetch sessions (KIP-227), over the wire and with a clock of the test's own."""

from typing import Any

import pytest

from mainstem.broker.requests.fetch_session import FetchSessionCache
from mainstem.protocol.apis.k01_fetch import FetchRequest, ForgottenTopic
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import (
    FETCH_BY_NAME,
    Client,
    Topic,
    ask,
    batch,
    create_topic,
    eventually,
    fetch_request,
    produce,
    values_of,
    waiting_fetches,
)

NEW, CLOSE = 0, -1


def partitions_of(response: Any) -> dict[int, Any]:
    assert response.error_code == 0
    return {data.partition_index: data for topic in response.responses for data in topic.partitions}


async def open_session(client: Client, topic: Topic, *asked: Any, version: int | None = None) -> int:
    response = await client.call(fetch_request({topic: asked}, session_epoch=NEW), version)
    assert len(partitions_of(response)) == len(asked), "a full answer names every partition"
    assert response.session_id > 0
    return int(response.session_id)


@pytest.mark.parametrize("version", [7, FETCH_BY_NAME, 13, 18])
async def test_an_incremental_answer_carries_only_what_changed(client: Client, version: int) -> None:
    topic = await create_topic(client, partitions=3)
    session = await open_session(client, topic, ask(0), ask(1), ask(2), version=version)
    nothing = await client.call(fetch_request(session_id=session, session_epoch=1), version)
    assert nothing.session_id == session
    assert partitions_of(nothing) == {}
    await produce(client, topic, b"v", partition=1)
    changed = await client.call(fetch_request(session_id=session, session_epoch=2), version)
    assert {index: values_of(data.records) for index, data in partitions_of(changed).items()} == {1: [b"v"]}


async def test_a_session_remembers_new_offsets_and_forgets_what_it_is_told_to(client: Client) -> None:
    topic = await create_topic(client, partitions=3)
    for partition in range(3):
        await produce(client, topic, b"a", partition=partition)
    session = await open_session(client, topic, ask(0), ask(1))
    forgotten = ForgottenTopic(topic=topic.name, topic_id=topic.topic_id, partitions=[1])
    request = fetch_request(
        {topic: [ask(0, offset=1), ask(2)]},
        session_id=session,
        session_epoch=1,
        forgotten_topics_data=[forgotten],
    )
    assert set(partitions_of(await client.call(request))) == {2}
    for partition in range(3):
        await produce(client, topic, b"b", partition=partition)
    response = await client.call(fetch_request(session_id=session, session_epoch=2))
    found = {index: values_of(data.records) for index, data in partitions_of(response).items()}
    assert found == {0: [b"b"], 2: [b"a", b"b"]}


async def test_a_moved_watermark_alone_is_a_change(client: Client) -> None:
    topic = await create_topic(client)
    session = await open_session(client, topic, ask(0))
    await produce(client, topic, bytes(5000))
    request = fetch_request({topic: [ask(0, offset=1)]}, session_id=session, session_epoch=1)
    (data,) = partitions_of(await client.call(request)).values()
    assert (data.high_watermark, values_of(data.records)) == (1, [])
    assert partitions_of(await client.call(fetch_request(session_id=session, session_epoch=2))) == {}


async def test_a_wrong_epoch_is_refused_and_the_session_goes_on(client: Client) -> None:
    topic = await create_topic(client)
    session = await open_session(client, topic, ask(0))
    for epoch in (2, 5, 2**31 - 1):
        response = await client.call(fetch_request(session_id=session, session_epoch=epoch))
        assert response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert response.responses == []
    assert (await client.call(fetch_request(session_id=session, session_epoch=1))).error_code == 0


async def test_an_unknown_session_is_refused(client: Client) -> None:
    response = await client.call(fetch_request(session_id=12345, session_epoch=1))
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_a_closed_session_is_unknown(client: Client) -> None:
    topic = await create_topic(client)
    session = await open_session(client, topic, ask(0))
    closing = await client.call(fetch_request(session_id=session, session_epoch=CLOSE))
    assert (closing.error_code, closing.session_id) == (0, 0)
    response = await client.call(fetch_request(session_id=session, session_epoch=1))
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_a_fetch_outside_of_any_session_makes_none(client: Client) -> None:
    topic = await create_topic(client)
    response = await client.call(fetch_request({topic: [ask(0)]}, session_epoch=CLOSE))
    assert (response.error_code, response.session_id) == (0, 0)
    assert len(partitions_of(response)) == 1


async def test_a_new_session_replaces_the_one_it_names(client: Client) -> None:
    topic = await create_topic(client)
    first = await open_session(client, topic, ask(0))
    request = fetch_request({topic: [ask(0)]}, session_id=first, session_epoch=NEW)
    second = (await client.call(request)).session_id
    assert second not in (0, first)
    response = await client.call(fetch_request(session_id=first, session_epoch=1))
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_a_session_by_names_cannot_go_on_by_ids(client: Client) -> None:
    topic = await create_topic(client)
    session = await open_session(client, topic, ask(0), version=FETCH_BY_NAME)
    response = await client.call(fetch_request(session_id=session, session_epoch=1))
    assert response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


async def test_a_session_that_has_nothing_left_ends(client: Client) -> None:
    topic = await create_topic(client)
    session = await open_session(client, topic, ask(0))
    forgotten = ForgottenTopic(topic=topic.name, topic_id=topic.topic_id, partitions=[0])
    request = fetch_request(session_id=session, session_epoch=1, forgotten_topics_data=[forgotten])
    request.max_wait_ms, request.min_bytes = 600_000, 1
    assert (await client.call(request)).session_id == 0
    response = await client.call(fetch_request(session_id=session, session_epoch=2))
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_partitions_that_returned_data_move_to_the_end_so_that_none_starves(client: Client) -> None:
    topic = await create_topic(client, partitions=3)
    size = len(batch(bytes(1000)))
    for partition in range(3):
        for _ in range(2):
            await produce(client, topic, bytes(1000), partition=partition)
    response = await client.call(
        fetch_request({topic: [ask(0), ask(1), ask(2)]}, session_epoch=NEW, max_bytes=size)
    )
    served = [index for index, data in partitions_of(response).items() if values_of(data.records)]
    for epoch in range(1, 4):
        # The client asks no partition for a new offset: without the turns, 0 would be served for ever.
        request = fetch_request(session_id=response.session_id, session_epoch=epoch, max_bytes=size)
        found = partitions_of(await client.call(request))
        served += [index for index, data in found.items() if values_of(data.records)]
    assert served == [0, 1, 2, 0]


async def test_an_error_is_told_again_until_it_is_over(client: Client) -> None:
    topic, other = await create_topic(client), await create_topic(client)
    response = await client.call(fetch_request({topic: [ask(0)], other: [ask(0)]}, session_epoch=NEW))
    deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic.name)], timeout_ms=10_000)
    await client.call(deletion)
    for epoch in (1, 2):
        answer = await client.call(fetch_request(session_id=response.session_id, session_epoch=epoch))
        (data,) = partitions_of(answer).values()
        assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_session_is_told_when_its_topic_was_deleted_and_created_again(client: Client) -> None:
    topic = await create_topic(client)
    session = await open_session(client, topic, ask(0))
    deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic.name)], timeout_ms=10_000)
    await client.call(deletion)
    await create_topic(client, topic.name)
    answer = await client.call(fetch_request(session_id=session, session_epoch=1))
    (data,) = partitions_of(answer).values()
    assert data.error_code == ErrorCode.INCONSISTENT_TOPIC_ID


async def test_an_incremental_fetch_waits_on_all_partitions_of_its_session(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic = await create_topic(client, partitions=2)
    reader = await connect(broker)
    session = await open_session(reader, topic, ask(0), ask(1))
    reader.send(fetch_request(session_id=session, session_epoch=1, max_wait_ms=600_000, min_bytes=1))
    await eventually(lambda: waiting_fetches(broker, topic, 1) == 1)
    await produce(client, topic, b"v", partition=1)
    assert set(partitions_of(await reader.receive())) == {1}
    timed_out = fetch_request(session_id=session, session_epoch=2, max_wait_ms=20, min_bytes=1_000_000)
    assert set(partitions_of(await reader.call(timed_out))) == {1}


async def test_without_a_free_slot_a_fetch_is_answered_outside_of_a_session(
    make_broker: MakeBroker, connect: Connect
) -> None:
    client = await connect(await make_broker({"max.incremental.fetch.session.cache.slots": 1}))
    topic = await create_topic(client)
    await open_session(client, topic, ask(0))
    response = await client.call(fetch_request({topic: [ask(0)]}, session_epoch=NEW))
    assert response.session_id == 0
    assert len(partitions_of(response)) == 1


# ---- the cache itself


def request_of(topic: Topic, session_id: int = 0, epoch: int = NEW) -> FetchRequest:
    return fetch_request({topic: [ask(0)]}, session_id=session_id, session_epoch=epoch)


TOPIC = Topic("t", bytes(16))
CONSUMER = (-1, 0, "User:ANONYMOUS", 0)


def test_an_unused_session_gives_way_after_the_eviction_time() -> None:
    cache = FetchSessionCache(2, eviction_ms=1000)
    assert cache.session(request_of(TOPIC), True, CONSUMER, 1, now_ms=0).session_id == 1
    assert cache.session(request_of(TOPIC), True, CONSUMER, 2, now_ms=0).session_id == 2
    assert cache.session(request_of(TOPIC), True, CONSUMER, 3, now_ms=999).session_id == 0
    assert cache.session(request_of(TOPIC, 1, 1), True, CONSUMER, 9, now_ms=999).session_id == 1
    assert cache.session(request_of(TOPIC), True, CONSUMER, 4, now_ms=1000).session_id == 4
    with pytest.raises(KafkaError) as refused:  # the one that was not used
        cache.session(request_of(TOPIC, 2, 1), True, CONSUMER, 9, now_ms=1000)
    assert refused.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(cache) == 2


def test_epochs_wrap_to_one() -> None:
    cache = FetchSessionCache(1, eviction_ms=1000)
    cache.session(request_of(TOPIC), True, CONSUMER, 1, now_ms=0)
    cache._sessions[1].epoch = 2**31 - 1
    cache.session(request_of(TOPIC, 1, 2**31 - 1), True, CONSUMER, 9, now_ms=0)
    assert cache.session(request_of(TOPIC, 1, 1), True, CONSUMER, 9, now_ms=0).session_id == 1


def test_an_id_that_is_taken_is_not_given_twice() -> None:
    cache = FetchSessionCache(10, eviction_ms=1000)
    assert cache.session(request_of(TOPIC), True, CONSUMER, 1, now_ms=0).session_id == 1
    assert cache.session(request_of(TOPIC), True, CONSUMER, 1, now_ms=0).session_id == 0


def test_without_slots_there_are_no_sessions() -> None:
    cache = FetchSessionCache(0, eviction_ms=1000)
    assert cache.session(request_of(TOPIC), True, CONSUMER, 1, now_ms=0).session_id == 0
