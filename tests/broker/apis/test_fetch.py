"""Fetch: what is read, within which limits, and how long a fetch waits for more."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from mainstem.protocol.errors import ErrorCode
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import (
    API_VERSIONS,
    FETCH_BY_NAME,
    Client,
    Topic,
    ask,
    batch,
    create_topic,
    delete_records,
    delete_topic,
    eventually,
    fetch,
    fetch_request,
    header_of,
    partition_of,
    produce,
    values_of,
    waiting_fetches,
)

FOR_EVER = 600_000


async def parked(client: Client, broker: InProcessBroker, topic: Topic, request: Any) -> asyncio.Future[Any]:
    """Send a fetch, see it wait, and return its answer to come."""
    before = waiting_fetches(broker, topic)
    client.send(request)
    await eventually(lambda: waiting_fetches(broker, topic) == before + 1, "the fetch is parked")
    return asyncio.ensure_future(client.receive())


@pytest.mark.parametrize("version", range(4, 19))
async def test_every_version_returns_the_batches_as_they_were_written(client: Client, version: int) -> None:
    topic = await create_topic(client)
    written = batch(b"a", b"b")
    await produce(client, topic, b"a", b"b")
    response = await client.call(fetch_request({topic: [ask()]}, isolation_level=version % 2), version)
    (answered,) = response.responses
    assert answered.topic == (topic.name if version <= FETCH_BY_NAME else "")
    assert answered.topic_id == (bytes(16) if version <= FETCH_BY_NAME else topic.topic_id)
    (data,) = answered.partitions
    assert (data.error_code, data.high_watermark, data.last_stable_offset) == (0, 2, 2)
    assert data.log_start_offset == (0 if version >= 5 else -1)
    assert data.preferred_read_replica == -1
    assert data.aborted_transactions == ([] if version % 2 else None)
    assert len(bytes(data.records)) == len(written)
    assert values_of(data.records) == [b"a", b"b"]
    assert header_of(data.records).partition_leader_epoch == 0


async def test_a_fetch_in_the_middle_of_a_batch_returns_the_whole_batch(client: Client) -> None:
    topic = await create_topic(client)
    await produce(client, topic, b"a", b"b", b"c")
    await produce(client, topic, b"d")
    assert values_of((await fetch(client, topic, offset=1)).records) == [b"a", b"b", b"c", b"d"]
    assert header_of((await fetch(client, topic, offset=2)).records).base_offset == 0
    assert values_of((await fetch(client, topic, offset=3)).records) == [b"d"]
    assert values_of((await fetch(client, topic, offset=4)).records) == []


@pytest.mark.parametrize("limit", [-1, 0, 1, 100])
async def test_the_first_batch_is_returned_whole_although_it_is_above_every_limit(
    client: Client, limit: int
) -> None:
    topic = await create_topic(client, partitions=2)
    for partition in (0, 1):
        await produce(client, topic, bytes(5000), partition=partition)
    by_partition = await client.call(
        fetch_request({topic: [ask(0, max_bytes=limit), ask(1, max_bytes=limit)]}, max_bytes=1 << 20)
    )
    by_total = await client.call(fetch_request({topic: [ask(0), ask(1)]}, max_bytes=limit))
    for response in (by_partition, by_total):
        first, second = response.responses[0].partitions
        assert values_of(first.records) == [bytes(5000)]
        assert values_of(second.records) == []
        assert (second.error_code, second.high_watermark) == (0, 1)


async def test_limits_cut_between_batches(client: Client) -> None:
    topic = await create_topic(client, partitions=2)
    size = len(batch(bytes(1000)))
    for partition in (0, 1):
        for _ in range(10):
            await produce(client, topic, bytes(1000), partition=partition)
    asked = {topic: [ask(0, max_bytes=3 * size + 10), ask(1)]}
    first, second = (await client.call(fetch_request(asked, max_bytes=5 * size))).responses[0].partitions
    assert len(values_of(first.records)) == 3
    assert len(values_of(second.records)) == 2


async def test_fetch_max_bytes_of_the_broker_is_a_limit_too(
    make_broker: MakeBroker, connect: Connect
) -> None:
    client = await connect(await make_broker({"fetch.max.bytes": 4096}))
    topic = await create_topic(client)
    for _ in range(10):
        await produce(client, topic, bytes(1000))
    assert len(values_of((await fetch(client, topic)).records)) == 3


async def test_offsets_outside_of_the_log_are_out_of_range(client: Client) -> None:
    topic = await create_topic(client)
    await produce(client, topic, b"a", b"b", b"c")
    await delete_records(client, topic, 1)
    for offset in (-1, 0, 4, 2**62):
        data = await fetch(client, topic, offset=offset, max_wait_ms=FOR_EVER, min_bytes=1)
        assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert data.aborted_transactions is None
    assert (await fetch(client, topic, offset=1)).log_start_offset == 1


async def test_unknown_topics_ids_and_partitions_are_named_as_such(client: Client) -> None:
    topic = await create_topic(client)
    missing = Topic("missing", bytes(15) + b"\1")
    waits = {"max_wait_ms": FOR_EVER, "min_bytes": 1}
    by_name = await client.call(fetch_request({missing: [ask()]}, **waits), FETCH_BY_NAME)
    by_id = await client.call(fetch_request({missing: [ask()]}, **waits))
    no_partition = await client.call(fetch_request({topic: [ask(5)]}, **waits))
    codes = [r.responses[0].partitions[0].error_code for r in (by_name, by_id, no_partition)]
    assert codes == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


async def test_an_error_on_one_partition_answers_at_once_with_the_data_of_the_others(client: Client) -> None:
    topic = await create_topic(client)
    await produce(client, topic, b"v")
    asked = {topic: [ask(0), ask(9)]}
    response = await client.call(fetch_request(asked, max_wait_ms=FOR_EVER, min_bytes=1_000_000))
    good, bad = response.responses[0].partitions
    assert values_of(good.records) == [b"v"]
    assert bad.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_leader_epoch_other_than_ours_is_refused(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker()
    topic = await create_topic(await connect(broker))
    await broker.restart()
    client = await connect(broker)
    epoch = partition_of(broker, topic).leader_epoch
    assert epoch == 1
    for asked, code in ((epoch, 0), (epoch - 1, 74), (epoch + 1, 75), (-1, 0)):
        response = await client.call(fetch_request({topic: [ask(current_leader_epoch=asked)]}))
        (data,) = response.responses[0].partitions
        assert data.error_code == code
        if code == ErrorCode.FENCED_LEADER_EPOCH:
            assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (1, epoch)
            assert [endpoint.port for endpoint in response.node_endpoints] == [broker.port]


async def test_a_reader_whose_epoch_ended_earlier_is_told_where(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker()
    topic = await create_topic(await connect(broker))
    await produce(await connect(broker), topic, b"a", b"b")
    await broker.restart()
    client = await connect(broker)
    await produce(client, topic, b"c")
    same = ask(0, offset=2, last_fetched_epoch=0)
    beyond = ask(0, offset=3, last_fetched_epoch=0)
    (agrees,) = (await client.call(fetch_request({topic: [same]}))).responses[0].partitions
    assert values_of(agrees.records) == [b"c"]
    response = await client.call(fetch_request({topic: [beyond]}, max_wait_ms=FOR_EVER, min_bytes=1))
    (diverges,) = response.responses[0].partitions
    assert (diverges.diverging_epoch.epoch, diverges.diverging_epoch.end_offset) == (0, 2)
    assert values_of(diverges.records) == []


# ---- long poll


async def test_a_fetch_that_finds_nothing_waits_and_is_woken_by_the_append(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic = await create_topic(client)
    reader = await connect(broker)
    request = fetch_request({topic: [ask()]}, max_wait_ms=FOR_EVER, min_bytes=1)
    answer = await parked(reader, broker, topic, request)
    await produce(client, topic, b"woken")
    assert values_of((await answer).responses[0].partitions[0].records) == [b"woken"]
    assert waiting_fetches(broker, topic) == 0


async def test_a_fetch_waits_until_min_bytes_are_there_in_all_its_partitions_together(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic, other = await create_topic(client, partitions=2), await create_topic(client)
    size = len(batch(bytes(1000)))
    await produce(client, topic, bytes(1000))
    reader = await connect(broker)
    asked = {topic: [ask(0), ask(1)], other: [ask(0)]}
    request = fetch_request(asked, max_wait_ms=FOR_EVER, min_bytes=4 * size)
    answer = await parked(reader, broker, topic, request)
    await produce(client, topic, bytes(1000), partition=1)
    await produce(client, other, bytes(1000))
    assert (await client.call(API_VERSIONS)).api_keys
    assert not answer.done()
    await produce(client, other, bytes(1000))
    response = await answer
    assert [len(values_of(p.records)) for t in response.responses for p in t.partitions] == [1, 1, 2]
    assert not any(partition_of(broker, *where).subscribers for where in ((topic, 0), (topic, 1), (other, 0)))


async def test_a_fetch_that_never_gets_enough_answers_with_what_there_is(
    client: Client, broker: InProcessBroker
) -> None:
    topic = await create_topic(client)
    await produce(client, topic, b"little")
    data = await fetch(client, topic, max_wait_ms=50, min_bytes=1_000_000)
    assert values_of(data.records) == [b"little"]
    nothing = await fetch(client, topic, offset=1, max_wait_ms=50, min_bytes=1)
    assert (nothing.error_code, nothing.high_watermark, values_of(nothing.records)) == (0, 1, [])
    assert waiting_fetches(broker, topic) == 0


async def test_nobody_waits_for_more_than_the_answer_may_hold(client: Client) -> None:
    topic = await create_topic(client)
    for _ in range(5):
        await produce(client, topic, bytes(1000))
    data = await fetch(client, topic, max_wait_ms=FOR_EVER, min_bytes=1 << 30, max_bytes=2000)
    assert len(values_of(data.records)) == 1


async def test_min_bytes_0_and_max_wait_0_answer_at_once(client: Client) -> None:
    topic = await create_topic(client)
    assert (await fetch(client, topic, max_wait_ms=FOR_EVER, min_bytes=0)).error_code == 0
    assert (await fetch(client, topic, max_wait_ms=0, min_bytes=1)).error_code == 0
    assert (await client.call(fetch_request(max_wait_ms=FOR_EVER, min_bytes=1))).responses == []


async def test_one_append_wakes_every_reader(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic = await create_topic(client)
    request = fetch_request({topic: [ask()]}, max_wait_ms=FOR_EVER, min_bytes=1)
    answers = [await parked(await connect(broker), broker, topic, request) for _ in range(20)]
    await produce(client, topic, b"for all")
    for response in await asyncio.gather(*answers):
        assert values_of(response.responses[0].partitions[0].records) == [b"for all"]


async def test_deleting_the_topic_answers_its_parked_fetches_at_once(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic, other = await create_topic(client), await create_topic(client)
    request = fetch_request({topic: [ask()], other: [ask()]}, max_wait_ms=FOR_EVER, min_bytes=1)
    answer = await parked(await connect(broker), broker, topic, request)
    await delete_topic(client, topic)
    gone, stays = (await answer).responses
    assert gone.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert stays.partitions[0].error_code == 0
    assert waiting_fetches(broker, other) == 0


async def test_a_fetch_that_waits_is_told_who_leads_when_this_broker_does_not_any_more(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic = await create_topic(client)
    request = fetch_request({topic: [ask(current_leader_epoch=0)]}, max_wait_ms=FOR_EVER, min_bytes=1)
    answer = await parked(await connect(broker), broker, topic, request)
    part = broker.node.image.topics_by_name[topic.name].partitions[0]
    partition_of(broker, topic).take_role(replace(part, leader=7, leader_epoch=part.leader_epoch + 1))
    (data,) = (await answer).responses[0].partitions
    assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (7, part.leader_epoch + 1)
    # Who reads from the leader alone, as all did before version 11, is sent on.
    request = fetch_request({topic: [ask()]}, max_wait_ms=FOR_EVER, min_bytes=1)
    (data,) = (await client.call(request, 10)).responses[0].partitions
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert waiting_fetches(broker, topic) == 0


async def test_a_topic_made_again_does_not_answer_for_the_old_one(
    client: Client, broker: InProcessBroker
) -> None:
    topic = await create_topic(client)
    await produce(client, topic, b"old")
    await delete_topic(client, topic)
    again = await create_topic(client, topic.name)
    await produce(client, again, b"new")
    by_old_id = (await client.call(fetch_request({topic: [ask()]}))).responses[0].partitions[0]
    assert by_old_id.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert values_of((await fetch(client, again)).records) == [b"new"]


async def test_deleting_records_wakes_a_fetch_below_the_new_start(
    client: Client, broker: InProcessBroker, connect: Connect
) -> None:
    topic = await create_topic(client)
    await produce(client, topic, b"a")
    request = fetch_request({topic: [ask()]}, max_wait_ms=FOR_EVER, min_bytes=1_000_000)
    answer = await parked(await connect(broker), broker, topic, request)
    await produce(client, topic, b"b")
    await delete_records(client, topic, 2)
    (data,) = (await answer).responses[0].partitions
    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_range_is_sent_whole_although_its_file_was_deleted_meanwhile(
    client: Client, broker: InProcessBroker
) -> None:
    topic = await create_topic(client)
    for _ in range(8):
        await produce(client, topic, bytes(900_000))
    slow = await Client.connect(broker.port)
    slow.send(fetch_request({topic: [ask(max_bytes=8_000_000)]}, max_bytes=8_000_000))
    slow.reader._transport.pause_reading()  # type: ignore[attr-defined]
    await slow.writer.drain()
    await delete_topic(client, topic)
    slow.reader._transport.resume_reading()  # type: ignore[attr-defined]
    (data,) = (await slow.receive()).responses[0].partitions
    assert values_of(data.records) == [bytes(900_000)] * 8
    await slow.close()
