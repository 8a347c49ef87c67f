"""The markers of a large transaction are written in many turns of the event loop: others are served in
between, and whatever happens in between is seen.
"""

import asyncio
from collections.abc import Iterator

import pytest

from mainstem.broker.turns import Turn
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.protocol.apis.k27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from mainstem.protocol.errors import ErrorCode
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import Client, Topic, create_topic, unique_name
from tests.broker.transactional import Producer, committed_values

PARTITIONS = 80


@pytest.fixture(autouse=True)
def one_marker_in_a_turn(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setattr(Turn, "is_over", True)
        yield


async def began(client: Client, name: str = "") -> tuple[Topic, Producer]:
    """A transaction that has a record in every partition of a topic."""
    topic = await create_topic(client, name, partitions=PARTITIONS)
    producer = await Producer(client, unique_name("large")).init()
    batches = {index: producer.batch(topic, b"v", partition=index) for index in range(PARTITIONS)}
    assert set(await producer.send_batches(topic, batches)) == {ErrorCode.NONE}
    return topic, producer


def markers(broker: InProcessBroker, topic: Topic, records: int = 1) -> int:
    """In how many partitions something stands behind the records."""
    by_topic = broker.node.replicas.by_topic
    return sum(by_topic(topic.name, index).log.log_end_offset > records for index in range(PARTITIONS))


async def completed(producer: Producer) -> str:
    while (state := (await producer.describe()).transaction_state) in ("", "PrepareCommit", "PrepareAbort"):
        await asyncio.sleep(0)
    return state


@pytest.mark.parametrize("commit", [True, False])
async def test_others_are_served_between_the_markers(
    broker: InProcessBroker, client: Client, connect: Connect, commit: bool
) -> None:
    other = await connect(broker)
    topic, producer = await began(client)
    assert await producer.end(commit) == ErrorCode.NONE
    seen = []
    while (written := markers(broker, topic)) < PARTITIONS:
        assert await other.is_served()
        seen.append(written)
    assert len(set(seen)) > 2, seen
    assert await completed(producer) == ("CompleteCommit" if commit else "CompleteAbort")
    for index in (0, PARTITIONS - 1):
        assert await committed_values(client, topic, index) == ([b"v"] if commit else [])


async def test_a_small_transaction_does_not_wait_for_a_large_one(
    broker: InProcessBroker, client: Client, connect: Connect
) -> None:
    topic, producer = await began(client)
    small = await Producer(await connect(broker), unique_name("small")).init()
    elsewhere = await create_topic(client)
    assert await small.send(elsewhere, b"v") == ErrorCode.NONE
    assert await producer.end(commit=True) == ErrorCode.NONE
    assert await small.end(commit=True) == ErrorCode.NONE
    assert await completed(small) == "CompleteCommit"
    assert 0 < markers(broker, topic) < PARTITIONS
    assert await completed(producer) == "CompleteCommit"


async def test_a_topic_that_is_made_again_in_between_gets_no_marker(
    broker: InProcessBroker, client: Client
) -> None:
    topic, producer = await began(client)
    assert await producer.end(commit=True) == ErrorCode.NONE
    assert markers(broker, topic) < PARTITIONS
    await client.call(DeleteTopicsRequest([DeleteTopicState(topic.name)], timeout_ms=10_000))
    again = await create_topic(client, topic.name, partitions=PARTITIONS)
    assert await completed(producer) == "CompleteCommit"
    assert markers(broker, again, records=0) == 0


async def test_a_stop_in_between_is_made_good_at_the_next_start(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker()
    topic, producer = await began(await connect(broker))
    assert await producer.end(commit=True) == ErrorCode.NONE
    assert 0 < markers(broker, topic) < PARTITIONS
    await broker.close()
    again = await make_broker(data_dir=broker.data_dir)
    producer.client = await connect(again)
    assert await completed(producer) == "CompleteCommit"
    assert markers(again, topic) == PARTITIONS


async def test_a_coordinator_that_is_loaded_again_goes_on(broker: InProcessBroker, client: Client) -> None:
    topic, producer = await began(client)
    coordinators = broker.node.transactions
    assert await producer.end(commit=True) == ErrorCode.NONE
    coordinators.shell._unload_all(ErrorCode.NOT_COORDINATOR)
    written = markers(broker, topic)
    for _ in range(PARTITIONS):
        await asyncio.sleep(0)
    assert markers(broker, topic) == written < PARTITIONS, "nobody has the say in this transaction"
    coordinators.metadata_changed()
    assert await completed(producer) == "CompleteCommit"
    assert markers(broker, topic) == PARTITIONS


async def test_markers_of_an_administrator_are_written_in_many_turns(
    broker: InProcessBroker, client: Client, connect: Connect
) -> None:
    administrator = await connect(broker)
    topic, producer = await began(client)
    everywhere = WritableTxnMarkerTopic(topic.name, list(range(PARTITIONS + 1)))
    marker = WritableTxnMarker(producer.producer_id, producer.producer_epoch + 1, False, [everywhere], 0, 2)
    administrator.send(WriteTxnMarkersRequest([marker]))
    seen = set()
    while (written := markers(broker, topic)) < PARTITIONS:
        assert await client.is_served()
        seen.add(written)
    assert len(seen) > 2, seen
    answer = await administrator.receive()
    (result,) = answer.markers[0].topics
    errors = {part.partition_index: part.error_code for part in result.partitions}
    assert errors.pop(PARTITIONS) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors == dict.fromkeys(range(PARTITIONS), ErrorCode.NONE)
