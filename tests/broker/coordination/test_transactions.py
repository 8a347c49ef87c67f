"""Transactions in a running broker: what is committed is read, nothing else is, and nobody hangs."""

import asyncio

import pytest

from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.protocol.apis.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from mainstem.protocol.apis.k66_list_transactions import ListTransactionsRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import (
    Client,
    create_topic,
    fetch,
    forget_follower,
    lose_follower,
    produce,
    unique_name,
)
from tests.broker.transactional import VERIFIES, Producer, committed_values


async def new_producer(client: Client, transactional_id: str = "") -> Producer:
    return await Producer(client, transactional_id or unique_name("transactional")).init()


async def state_becomes(producer: Producer, state: str) -> None:
    while (await producer.describe()).transaction_state != state:
        await asyncio.sleep(0.002)


@pytest.mark.parametrize("commit", [True, False])
async def test_a_transaction_is_seen_whole_or_not_at_all(client: Client, commit: bool) -> None:
    topic = await create_topic(client, partitions=2)
    producer = await new_producer(client)
    assert await producer.send(topic, b"a", b"b") == ErrorCode.NONE
    assert await producer.send(topic, b"c", partition=1) == ErrorCode.NONE
    assert await producer.send(topic, b"d") == ErrorCode.NONE
    assert await committed_values(client, topic) == []
    before = await fetch(client, topic, isolation_level=1)
    assert (before.high_watermark, before.last_stable_offset) == (3, 0)
    assert await producer.end(commit) == ErrorCode.NONE
    assert await committed_values(client, topic) == ([b"a", b"b", b"d"] if commit else [])
    assert await committed_values(client, topic, 1) == ([b"c"] if commit else [])
    after = await fetch(client, topic, isolation_level=1)
    assert (after.high_watermark, after.last_stable_offset) == (4, 4), "the marker is a record too"
    assert [entry.first_offset for entry in after.aborted_transactions or []] == ([] if commit else [0])


async def test_one_transaction_after_the_other_gets_an_epoch_of_its_own(client: Client) -> None:
    topic = await create_topic(client)
    producer = await new_producer(client)
    epochs = []
    for number in range(5):
        epochs.append(producer.producer_epoch)
        assert await producer.send(topic, b"%d" % number) == ErrorCode.NONE
        assert await producer.send(topic, b"%d more" % number) == ErrorCode.NONE
        assert await producer.end(commit=number != 2) == ErrorCode.NONE
    assert epochs == [0, 1, 2, 3, 4]
    values = await committed_values(client, topic)
    assert values == [b"0", b"0 more", b"1", b"1 more", b"3", b"3 more", b"4", b"4 more"]


async def test_clients_of_the_older_protocol_add_partitions_by_themselves(client: Client) -> None:
    topic = await create_topic(client, partitions=2)
    producer = await new_producer(client)
    for commit in (True, False, True):
        assert await producer.add(topic, 0, 1) == [ErrorCode.NONE, ErrorCode.NONE]
        assert await producer.send(topic, b"v%d" % commit, version=10) == ErrorCode.NONE
        assert await producer.send(topic, b"w", partition=1, version=10) == ErrorCode.NONE
        assert await producer.end(commit, version=4) == ErrorCode.NONE
    assert producer.producer_epoch == 0
    assert await committed_values(client, topic) == [b"v1", b"v1"]


@pytest.mark.parametrize(
    ("version", "error"),
    [(10, ErrorCode.INVALID_TXN_STATE), (VERIFIES, ErrorCode.TRANSACTION_ABORTABLE)],
)
async def test_a_partition_that_was_not_added_is_refused(
    client: Client, version: int, error: ErrorCode
) -> None:
    topic = await create_topic(client, partitions=2)
    producer = await new_producer(client)
    await producer.add(topic, 0)
    batches = {index: producer.batch(topic, b"v", partition=index) for index in (0, 1)}
    assert await producer.send_batches(topic, batches, version) == [ErrorCode.NONE, error]
    assert (await fetch(client, topic, partition=1)).high_watermark == 0
    assert await producer.end(commit=True, version=4) == ErrorCode.NONE
    assert await committed_values(client, topic) == [b"v"]


async def test_all_partitions_of_a_request_are_added_at_once(client: Client) -> None:
    topic = await create_topic(client, partitions=3)
    producer = await new_producer(client)
    batches = {index: producer.batch(topic, b"v%d" % index, partition=index) for index in (0, 1, 2, 7)}
    errors = await producer.send_batches(topic, batches)
    assert errors == [ErrorCode.NONE] * 3 + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    state = await producer.describe()
    assert state.transaction_state == "Ongoing"
    assert [(entry.topic, entry.partitions) for entry in state.topics] == [(topic.name, [0, 1, 2])]
    assert await producer.end(commit=True) == ErrorCode.NONE
    assert [await committed_values(client, topic, index) for index in range(3)] == [[b"v0"], [b"v1"], [b"v2"]]


async def test_requests_in_flight_are_appended_in_their_order(client: Client) -> None:
    topic = await create_topic(client)
    producer = await new_producer(client)
    batches = [producer.batch(topic, b"%d" % number) for number in range(5)]
    client.send(*[producer.request(topic, {0: records}) for records in batches], version=12)
    answers = [await client.receive() for _ in batches]
    offsets = [answer.responses[0].partition_responses[0].base_offset for answer in answers]
    assert offsets == [0, 1, 2, 3, 4]
    assert await producer.end(commit=True) == ErrorCode.NONE
    assert await committed_values(client, topic) == [b"0", b"1", b"2", b"3", b"4"]


async def test_the_short_way_is_for_batches_of_an_open_transaction(
    client: Client, short_ways: list[bool]
) -> None:
    topic = await create_topic(client)
    producer = await new_producer(client)
    for commit in (True, False, True):
        for value in (b"first", b"second", b"third"):
            assert await producer.send(topic, value) == ErrorCode.NONE
        assert (await producer.describe()).transaction_state == "Ongoing"
        assert await producer.end(commit) == ErrorCode.NONE
    assert await committed_values(client, topic) == [b"first", b"second", b"third"] * 2
    # The very first one that is answered at once is remembered; then the first of each transaction is asked.
    assert short_ways == [True, False, True, True, False, True, True]


async def test_the_short_way_is_for_partitions_that_a_client_added(
    client: Client, short_ways: list[bool]
) -> None:
    topic = await create_topic(client)
    producer = await new_producer(client)
    for commit in (True, False, True):
        assert await producer.add(topic, 0) == [ErrorCode.NONE]
        for value in (b"first", b"second"):
            assert await producer.send(topic, value, version=10) == ErrorCode.NONE
        assert await producer.end(commit, version=4) == ErrorCode.NONE
    assert await producer.send(topic, b"not added", version=10) == ErrorCode.INVALID_TXN_STATE
    assert await committed_values(client, topic) == [b"first", b"second"] * 2
    assert short_ways == [True, True, True, True, True, False]


async def test_the_short_way_does_not_let_a_batch_without_transactional_id_pass(client: Client) -> None:
    topic = await create_topic(client)
    producer = await new_producer(client)
    assert await producer.send(topic, b"v") == ErrorCode.NONE
    for _ in range(3):
        assert (await produce(client, topic, b"plain")).error_code == ErrorCode.NONE
    request = producer.request(topic, {0: producer.batch(topic, b"v")})
    request.transactional_id = None
    answer = await client.call(request)
    error = answer.responses[0].partition_responses[0].error_code
    assert error == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


async def test_a_transactional_batch_without_a_transactional_id_is_refused(client: Client) -> None:
    topic = await create_topic(client)
    producer = await new_producer(client)
    request = producer.request(topic, {0: producer.batch(topic, b"v")})
    request.transactional_id = None
    answer = await client.call(request)
    error = answer.responses[0].partition_responses[0].error_code
    assert error == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert (await fetch(client, topic)).high_watermark == 0


async def test_batches_of_two_producers_in_one_request_are_refused(client: Client) -> None:
    topic = await create_topic(client, partitions=2)
    one, other = await new_producer(client), await new_producer(client)
    batches = {0: one.batch(topic, b"v"), 1: other.batch(topic, b"v", partition=1)}
    assert await one.send_batches(topic, batches) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


async def test_the_older_of_two_producers_is_fenced_and_its_records_are_not_seen(client: Client) -> None:
    topic = await create_topic(client)
    zombie = await new_producer(client)
    assert await zombie.send(topic, b"zombie") == ErrorCode.NONE
    heir = await new_producer(client, zombie.transactional_id)
    assert heir.producer_id == zombie.producer_id
    assert await zombie.send(topic, b"late") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await zombie.end(commit=True) == ErrorCode.PRODUCER_FENCED
    assert await heir.send(topic, b"heir") == ErrorCode.NONE
    assert await zombie.send(topic, b"later") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await heir.end(commit=True) == ErrorCode.NONE
    assert await committed_values(client, topic) == [b"heir"]


async def test_records_outside_of_transactions_wait_behind_an_open_one(client: Client) -> None:
    topic = await create_topic(client)
    producer = await new_producer(client)
    await produce(client, topic, b"before")
    await producer.send(topic, b"inside")
    await produce(client, topic, b"after")
    assert await committed_values(client, topic) == [b"before"]
    await producer.end(commit=False)
    assert await committed_values(client, topic) == [b"before", b"after"]


async def test_a_transaction_over_a_deleted_topic_can_be_ended(client: Client) -> None:
    gone, stays = await create_topic(client), await create_topic(client)
    producer = await new_producer(client)
    await producer.send(gone, b"v")
    await producer.send(stays, b"v")
    await client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=gone.name)], timeout_ms=10_000))
    assert await producer.end(commit=True) == ErrorCode.NONE
    assert (await producer.describe()).transaction_state == "CompleteCommit"
    assert await committed_values(client, stays) == [b"v"]


async def test_an_open_transaction_outlives_the_broker(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker()
    client = await connect(broker)
    topic = await create_topic(client)
    producer = await new_producer(client)
    await producer.send(topic, b"a")
    await broker.close()
    again = await make_broker(data_dir=broker.data_dir)
    producer.client = client = await connect(again)
    while (await producer.describe()).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        await asyncio.sleep(0.002)
    assert await committed_values(client, topic) == []
    assert await producer.send(topic, b"b") == ErrorCode.NONE
    assert await producer.end(commit=True) == ErrorCode.NONE
    assert await committed_values(client, topic) == [b"a", b"b"]


async def test_a_transaction_that_takes_too_long_is_aborted(
    make_broker: MakeBroker, connect: Connect
) -> None:
    interval = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    client = await connect(await make_broker({interval: 10}))
    topic = await create_topic(client)
    producer = await Producer(client, "t").init(timeout_ms=1)
    assert await producer.send(topic, b"v") == ErrorCode.NONE
    await state_becomes(producer, "CompleteAbort")
    assert await producer.send(topic, b"late") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await producer.end(commit=True) == ErrorCode.INVALID_TXN_STATE
    assert await committed_values(client, topic) == []


async def test_a_marker_that_cannot_be_written_is_tried_again(
    client: Client, broker: InProcessBroker
) -> None:
    topic = await create_topic(client, configs={"min.insync.replicas": "2"})
    producer = await new_producer(client)
    await producer.send(topic, b"v")
    await lose_follower(broker, topic)
    assert await producer.end(commit=True) == ErrorCode.NONE
    assert (await producer.describe()).transaction_state == "PrepareCommit"
    assert await committed_values(client, topic) == []
    await forget_follower(broker, topic)
    await state_becomes(producer, "CompleteCommit")
    assert await committed_values(client, topic) == [b"v"]


async def test_without_verification_the_older_protocol_appends_at_once(
    make_broker: MakeBroker, connect: Connect
) -> None:
    client = await connect(await make_broker({"transaction.partition.verification.enable": "false"}))
    topic = await create_topic(client)
    producer = await new_producer(client)
    assert await producer.send(topic, b"unknown to the coordinator", version=10) == ErrorCode.NONE
    assert (await producer.describe()).transaction_state == "Empty"
    newer = await new_producer(client)
    for _ in range(3):
        assert await newer.send(topic, b"v") == ErrorCode.NONE
    assert (await newer.describe()).transaction_state == "Ongoing", "added although nothing is verified"


# ---- administration


async def test_transactions_are_listed_by_state_producer_age_and_name(client: Client) -> None:
    topic = await create_topic(client)
    prefix = unique_name("listed")
    idle, busy = await new_producer(client, f"{prefix}-idle"), await new_producer(client, f"{prefix}-busy")
    await busy.send(topic, b"v")

    async def listed(**filters: object) -> list[tuple[str, int, str]]:
        request = ListTransactionsRequest(**({"transactional_id_pattern": f"{prefix}.*"} | filters))  # type: ignore[arg-type]
        answer = await client.call(request)
        assert answer.error_code == 0
        return sorted(
            (entry.transactional_id, entry.producer_id, entry.transaction_state)
            for entry in answer.transaction_states
        )

    the_idle = (idle.transactional_id, idle.producer_id, "Empty")
    the_busy = (busy.transactional_id, busy.producer_id, "Ongoing")
    assert await listed() == [the_busy, the_idle]
    assert await listed(state_filters=["Ongoing"]) == [the_busy]
    assert await listed(producer_id_filters=[idle.producer_id]) == [the_idle]
    assert await listed(transactional_id_pattern=f"{prefix}-b.*") == [the_busy]
    assert await listed(state_filters=["Ongoing"], duration_filter=3_600_000) == []
    odd = await client.call(ListTransactionsRequest(state_filters=["Odd", "Empty"]))
    assert odd.unknown_state_filters == ["Odd"]
    wrong = await client.call(ListTransactionsRequest(transactional_id_pattern="("))
    assert wrong.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


async def test_transactions_are_counted(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker()
    client = await connect(broker)
    transactions = broker.node.transactions
    topic = await create_topic(client)
    one, other = await new_producer(client), await new_producer(client)
    assert transactions.counts() == (0, None, 0, 0)
    await one.send(topic, b"v")
    await other.send(topic, b"v")
    counts = transactions.counts()
    started_ms = (await one.describe()).transaction_start_time_ms
    assert (counts.open, counts.oldest_started_ms) == (2, started_ms)
    await one.end(commit=True)
    await other.end(commit=False)
    assert (await one.describe()).transaction_state == "CompleteCommit"
    assert transactions.counts() == (0, None, 1, 1)


async def test_an_unknown_transactional_id_is_not_found(client: Client) -> None:
    known = await new_producer(client)
    unknown = Producer(client, unique_name("unknown"))
    assert (await known.describe()).error_code == ErrorCode.NONE
    assert (await unknown.describe()).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


async def test_markers_of_an_administrator_end_a_hanging_transaction(
    client: Client, broker: InProcessBroker
) -> None:
    topic = await create_topic(client)
    producer = await new_producer(client)
    await producer.send(topic, b"v")
    epoch = broker.node.replicas.by_topic(topic.name, 0).leader_epoch
    topics = [WritableTxnMarkerTopic(topic.name, [0, 5])]
    marker = WritableTxnMarker(producer.producer_id, producer.producer_epoch, False, topics, epoch)
    answer = await client.call(WriteTxnMarkersRequest([marker]))
    (result,) = answer.markers[0].topics
    assert [(part.partition_index, part.error_code) for part in result.partitions] == [
        (0, ErrorCode.NONE),
        (5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    data = await fetch(client, topic, isolation_level=1)
    assert (data.last_stable_offset, data.high_watermark) == (2, 2)
    assert await committed_values(client, topic) == []
