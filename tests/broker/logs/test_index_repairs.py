"""Damaged transaction indexes: made again beside the broker; whoever needs one meanwhile is to come again."""

import os
from pathlib import Path

import pytest

from mainstem.protocol.errors import ErrorCode
from mainstem.records.batch import iter_headers
from mainstem.storage.producers.transaction_index import TXN_INDEX_SUFFIX
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import Client, Topic, create_topic, eventually, fetch, partition_of, unique_name
from tests.broker.transactional import Producer, committed_values

COMMITTED = 1


async def aborted_once(client: Client) -> tuple[Topic, Producer]:
    """A topic with an aborted transaction and a committed one."""
    topic = await create_topic(client)
    producer = await Producer(client, unique_name("id")).init()
    for value, commit in ((b"aborted", False), (b"kept", True)):
        assert await producer.send(topic, value) == ErrorCode.NONE
        assert await producer.end(commit) == ErrorCode.NONE
    return topic, producer


def index_of(broker: InProcessBroker, topic: Topic) -> Path:
    (path,) = Path(partition_of(broker, topic).log.directory).glob(f"*{TXN_INDEX_SUFFIX}")
    return path


async def fetch_until_repaired(client: Client, topic: Topic) -> list[ErrorCode]:
    """The errors on the way."""
    errors: list[ErrorCode] = []
    while (error := (await fetch(client, topic, isolation_level=COMMITTED)).error_code) != ErrorCode.NONE:
        errors.append(ErrorCode(error))
        assert await client.is_served()
    return errors


@pytest.mark.parametrize("damage", [b"", b"\0\1", b"\0" * 34], ids=["gone", "torn", "zeros"])
async def test_a_fetch_that_comes_upon_a_damaged_index_is_told_to_come_again(
    broker: InProcessBroker, client: Client, damage: bytes
) -> None:
    topic, _ = await aborted_once(client)
    path = index_of(broker, topic)
    before = path.read_bytes()
    path.write_bytes(damage) if damage else path.unlink()
    errors = await fetch_until_repaired(client, topic)
    assert set(errors) == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert path.read_bytes() == before
    assert await committed_values(client, topic) == [b"kept"]
    assert [entry.name for entry in path.parent.glob("*.tmp")] == []


async def test_a_marker_waits_for_the_index_it_belongs_into(broker: InProcessBroker, client: Client) -> None:
    topic, producer = await aborted_once(client)
    path = index_of(broker, topic)
    path.write_bytes(path.read_bytes()[:20])
    assert (await fetch(client, topic, isolation_level=COMMITTED)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert await producer.send(topic, b"aborted too") == ErrorCode.NONE
    assert await producer.end(commit=False) == ErrorCode.NONE
    assert (await producer.describe()).transaction_state == "PrepareAbort"
    while (await producer.describe()).transaction_state != "CompleteAbort":
        assert await client.is_served()
    assert await committed_values(client, topic) == [b"kept"]
    assert path.stat().st_size == 2 * 34


async def test_a_segment_that_is_damaged_itself_is_an_error_of_its_partition(
    broker: InProcessBroker, client: Client
) -> None:
    topic, _ = await aborted_once(client)
    sound, _ = await aborted_once(client)
    index_of(broker, topic).unlink()
    log = partition_of(broker, topic).log
    with open(log.segments.active.path(".log"), "r+b") as file:
        (_, _), (second, _), *_ = iter_headers(file.read())
        file.seek(second + 8)
        file.write(b"\0\0\0\1")  # the length of the batch
    errors = []
    while ErrorCode.CORRUPT_MESSAGE not in errors:
        errors.append(ErrorCode((await fetch(client, topic, isolation_level=COMMITTED)).error_code))
    assert errors[0] == ErrorCode.KAFKA_STORAGE_ERROR, "until somebody has looked"
    assert set(errors) <= {ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.CORRUPT_MESSAGE}
    assert await committed_values(client, sound) == [b"kept"]


async def test_a_broker_stops_in_the_middle_of_a_repair(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker()
    client = await connect(broker)
    topic, _ = await aborted_once(client)
    path = index_of(broker, topic)
    os.truncate(path, 3)
    assert (await fetch(client, topic, isolation_level=COMMITTED)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    await broker.close()
    again = await make_broker(data_dir=broker.data_dir)
    client = await connect(again)
    await fetch_until_repaired(client, topic)
    assert await committed_values(client, topic) == [b"kept"]


async def test_a_topic_that_is_deleted_meanwhile_needs_no_index(
    broker: InProcessBroker, client: Client
) -> None:
    topic, _ = await aborted_once(client)
    os.truncate(index_of(broker, topic), 3)
    repairs = broker.node._index_repairs
    assert repairs is not None
    await fetch(client, topic, isolation_level=COMMITTED)
    assert repairs._running
    broker.node.log_manager.delete(topic.name, 0, broker.node.clock.now_ms())
    await eventually(lambda: not repairs._running)
    assert not any(log.topic == topic.name for log, _ in repairs._hopeless)
