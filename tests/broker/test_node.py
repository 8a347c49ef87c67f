"""A node's life: start, restart, crash, several in one process, background work, and start-up errors."""

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from mainstem.protocol.apis.k03_metadata import MetadataRequest
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from mainstem.protocol.apis.k22_init_producer_id import InitProducerIdRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.testing import Broker, BrokerError
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import (
    Client,
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

AT_ONCE = {"log.initial.task.delay.ms": 0, "log.retention.check.interval.ms": 20}


async def new_producer_id(client: Client, version: int | None = None) -> int:
    response = await client.call(
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), version
    )
    assert (response.error_code, response.producer_epoch) == (0, 0)
    return int(response.producer_id)


async def test_everything_is_there_after_a_restart(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker()
    client = await connect(broker)
    topic = await create_topic(client, partitions=2, configs={"max.message.bytes": "5000"})
    await produce(client, topic, b"a", b"b", partition=1)
    before = await client.call(MetadataRequest(topics=None))
    await broker.restart()
    client = await connect(broker)
    after = await client.call(MetadataRequest(topics=None))
    assert after.cluster_id == before.cluster_id
    assert [(t.name, t.topic_id, len(t.partitions)) for t in after.topics] == [(*topic, 2)]
    assert values_of((await fetch(client, topic, partition=1)).records) == [b"a", b"b"]
    assert (await produce(client, topic, b"c", partition=1)).base_offset == 2
    assert (await produce(client, topic, bytes(6000))).error_code == ErrorCode.MESSAGE_TOO_LARGE


async def test_every_restart_bumps_the_leader_epochs(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker()
    topic = await create_topic(await connect(broker))
    epochs = []
    for _ in range(3):
        epochs.append(partition_of(broker, topic).leader_epoch)
        await broker.restart()
    assert epochs == [0, 1, 2]


async def test_idempotence_survives_a_restart(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker()
    client = await connect(broker)
    topic = await create_topic(client)
    producer_id = await new_producer_id(client)
    options: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": 0}
    for sequence in range(3):
        await produce(client, topic, b"v", base_sequence=sequence, **options)
    await broker.restart()
    client = await connect(broker)
    assert (await produce(client, topic, b"v", base_sequence=2, **options)).base_offset == 2
    gap = await produce(client, topic, b"v", base_sequence=5, **options)
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await produce(client, topic, b"v", base_sequence=3, **options)).base_offset == 3


async def test_producer_ids_are_never_issued_twice(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker()
    issued: list[int] = []
    for _ in range(3):
        clients = [await connect(broker) for _ in range(5)]
        issued += await asyncio.gather(*[new_producer_id(client) for client in clients])
        issued += [await new_producer_id(clients[0], version) for version in range(6)]
        await broker.restart()
    assert len(set(issued)) == len(issued)


def test_producer_ids_are_never_issued_twice_although_the_broker_is_killed(tmp_path: Path) -> None:
    async def ids(port: int) -> list[int]:
        async with await Client.connect(port) as client:
            return [await new_producer_id(client) for _ in range(3)]

    issued: list[int] = []
    with Broker(data_dir=tmp_path / "data") as broker:
        for _ in range(2):
            issued += asyncio.run(ids(broker.port))
            broker.kill()
            broker.start()
        issued += asyncio.run(ids(broker.port))
    assert len(set(issued)) == 9


async def test_several_nodes_live_in_one_process(make_broker: MakeBroker, connect: Connect) -> None:
    brokers = [await make_broker() for _ in range(3)]
    topics = [await create_topic(await connect(broker), "same-name") for broker in brokers]
    assert len({topic.topic_id for topic in topics}) == 3
    for number, (broker, topic) in enumerate(zip(brokers, topics, strict=True)):
        assert (await produce(await connect(broker), topic, b"%d" % number)).base_offset == 0
    for number, (broker, topic) in enumerate(zip(brokers, topics, strict=True)):
        assert values_of((await fetch(await connect(broker), topic)).records) == [b"%d" % number]


def test_plain_asyncio_serves_as_well() -> None:
    async def main() -> None:
        async with Broker.in_process() as broker, await Client.connect(broker.port) as client:
            topic = await create_topic(client)
            reader = await Client.connect(broker.port)
            reader.send(fetch_request({topic: [ask()]}, max_wait_ms=600_000, min_bytes=1))
            await eventually(lambda: waiting_fetches(broker, topic) == 1)
            await produce(client, topic, bytes(900_000))
            (data,) = (await reader.receive()).responses[0].partitions
            assert values_of(data.records) == [bytes(900_000)]
            await reader.close()

    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(main())


# ---- background work


async def test_old_segments_go_in_the_background_and_readers_are_told(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker(AT_ONCE | {"log.segment.delete.delay.ms": 50})
    client = await connect(broker)
    configs = {"retention.bytes": "5000", "internal.segment.bytes": "2000"}
    topic = await create_topic(client, configs=configs)
    log = partition_of(broker, topic).log
    reader = await connect(broker)
    reader.send(fetch_request({topic: [ask()]}, max_wait_ms=600_000, min_bytes=1_000_000))
    for _ in range(20):
        await produce(client, topic, bytes(900))
    await eventually(lambda: log.log_start_offset > 10, "retention by size")
    (data,) = (await reader.receive()).responses[0].partitions
    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert values_of((await fetch(client, topic, offset=19)).records) == [bytes(900)]
    assert (await fetch(client, topic, offset=19)).log_start_offset == log.log_start_offset
    first = f"{log.log_start_offset:020}."
    await eventually(lambda: min(os.listdir(log.directory)) >= first, "the files are removed")


async def test_retention_by_time_empties_a_topic_without_using_an_offset_twice(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker(AT_ONCE)
    client = await connect(broker)
    topic = await create_topic(client, configs={"retention.ms": "1", "internal.segment.bytes": "2000"})
    for _ in range(5):
        await produce(client, topic, bytes(900))
    log = partition_of(broker, topic).log
    await eventually(lambda: log.log_start_offset == 5, "retention by time")
    assert (await produce(client, topic, b"next")).base_offset == 5
    await broker.restart()
    client = await connect(broker)
    assert (await produce(client, topic, b"next")).base_offset == 6


async def test_a_deleted_topics_folder_is_removed_later(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker({"log.segment.delete.delay.ms": 50})
    client = await connect(broker)
    topic = await create_topic(client, partitions=2)
    await produce(client, topic, b"v")
    await client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic.name)], timeout_ms=1000))

    def folders() -> list[str]:
        return [name for name in os.listdir(broker.data_dir) if name.startswith(topic.name)]

    await eventually(lambda: not folders(), "the folders are gone")


async def test_a_folder_deleted_before_a_crash_is_removed_after_it(
    make_broker: MakeBroker, connect: Connect, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    leftover = data / f"gone-0.{'0' * 32}-delete"
    leftover.mkdir(parents=True)
    (leftover / "00000000000000000000.log").write_bytes(b"x")
    broker = await make_broker({"log.segment.delete.delay.ms": 50}, data_dir=data)
    await eventually(lambda: not leftover.exists())
    assert await (await connect(broker)).is_served()


# ---- starting


async def test_a_port_that_is_taken_is_one_line(make_broker: MakeBroker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BrokerError) as refused:
            await make_broker(port=port)
    assert str(port) in str(refused.value)
    assert "in use" in str(refused.value)
    assert "\n" not in str(refused.value)


async def test_a_data_directory_in_use_is_one_line(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker()
    with pytest.raises(BrokerError) as refused:
        await make_broker(data_dir=broker.data_dir)
    assert str(broker.data_dir) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert await (await connect(broker)).is_served()


async def test_a_data_directory_that_cannot_be_made_is_one_line(
    make_broker: MakeBroker, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(BrokerError) as refused:
        await make_broker(data_dir=tmp_path / "file" / "data")
    assert "\n" not in str(refused.value)


async def test_a_start_that_failed_leaves_everything_free(make_broker: MakeBroker, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(BrokerError):
        await make_broker(port=taken.getsockname()[1], data_dir=tmp_path / "data")
    broker = await make_broker(data_dir=tmp_path / "data")
    assert broker.port


async def test_an_advertised_address_that_nobody_answers_is_a_warning_with_the_setting(
    make_broker: MakeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    broker = await make_broker({"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"})
    check = broker.node._self_check
    assert check is not None
    (problem,) = await check
    assert "advertised.listeners" in problem
    assert problem in caplog.text


async def test_stopping_during_an_fsync_waits_and_loses_nothing(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker: InProcessBroker = await make_broker()
    clients = [await connect(broker) for _ in range(5)]
    topic = await create_topic(clients[0], configs={"flush.messages": "1"})
    acknowledged = 0

    async def produce_until_closed(client: Client) -> int:
        count = 0
        try:
            while (await produce(client, topic, b"v")).error_code == 0:
                count += 1
        except Exception:
            return count
        return count

    work = [asyncio.ensure_future(produce_until_closed(client)) for client in clients]
    await eventually(lambda: partition_of(broker, topic).high_watermark > 20)
    await asyncio.wait_for(broker.stop(), 20)
    acknowledged = sum(await asyncio.gather(*work))
    await broker.start()
    data = await fetch(await connect(broker), topic)
    assert data.high_watermark >= acknowledged > 20
    assert len(batch(b"v")) * data.high_watermark == partition_of(broker, topic).log.size
