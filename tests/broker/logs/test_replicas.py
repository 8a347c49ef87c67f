"""Partitions whose logs cannot be made are offline: known, with the reason, and back without its cause."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mainstem.broker.clock import Clock
from mainstem.broker.coordination.internal_topics import CONSUMER_OFFSETS
from mainstem.cluster.delta import MetadataDelta
from mainstem.cluster.records import PartitionRecord, RemoveTopicRecord, TopicRecord
from mainstem.protocol.apis.k01_fetch import FetchPartition
from mainstem.protocol.apis.k03_metadata import MetadataRequest, MetadataRequestTopic
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k19_create_topics import CreatableTopic, CreateTopicsRequest
from mainstem.protocol.apis.k35_describe_log_dirs import DescribeLogDirsPartition, DescribeLogDirsRequest
from mainstem.protocol.apis.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.storage.directories.log_manager import LogManager
from mainstem.storage.log import Log
from mainstem.testing.in_process import InProcessBroker
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import (
    Client,
    Topic,
    create_topic,
    delete_topic,
    eventually,
    fetch_request,
    produce,
)
from tests.broker.scraping import ask, metrics_port, scrape
from tests.support.failing_files import FailingFiles

METRICS = {"mainstem.metrics.port": 0}


def _block(broker: InProcessBroker, topic: str, *partitions: int) -> list[Path]:
    """Files where the folders of these partitions should be."""
    files = [Path(broker.data_dir) / f"{topic}-{index}" for index in partitions]
    for file in files:
        file.write_text("in the way")
    return files


async def _create(client: Client, name: str, partitions: int) -> tuple[ErrorCode, str]:
    request = CreateTopicsRequest(topics=[CreatableTopic(name, partitions, 1)], timeout_ms=10_000)
    (result,) = (await client.call(request)).topics
    return ErrorCode(result.error_code), result.error_message or ""


async def _offline_replicas(client: Client, name: str) -> dict[int, list[int]]:
    answer = await client.call(MetadataRequest(topics=[MetadataRequestTopic(name=name)]))
    return {part.partition_index: part.offline_replicas for part in answer.topics[0].partitions}


async def _described(client: Client, name: str) -> dict[int, DescribeLogDirsPartition]:
    answer = await client.call(DescribeLogDirsRequest(topics=None, include_log_state=True))
    (topic,) = (topic for result in answer.results for topic in result.topics if topic.name == name)
    return {part.partition_index: part for part in topic.partitions}


async def test_a_log_that_cannot_be_made_is_an_offline_partition(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker(METRICS)
    client = await connect(broker)
    files = _block(broker, "t", 1)
    code, message = await _create(client, "t", 3)
    assert code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "topic t exists, but" in message
    assert "in the way" in message
    topic = Topic("t", broker.node.image.topics_by_name["t"].topic_id)
    for index, expected in enumerate((0, ErrorCode.KAFKA_STORAGE_ERROR, 0)):
        assert (await produce(client, topic, b"v", partition=index)).error_code == expected
    assert await _offline_replicas(client, "t") == {0: [], 1: [1], 2: []}
    assert (await scrape(broker)).one("mainstem_partitions_offline") == 1
    described = await _described(client, "t")
    assert [described[index].offset_lag for index in range(3)] == [0, -1, 0]
    assert "in the way" in (described[1].offline or "")
    assert described[0].offline is None
    files[0].unlink()
    await eventually(lambda: not broker.node.replicas.unmade, "the log is made without being asked for")
    assert await _offline_replicas(client, "t") == {0: [], 1: [], 2: []}
    assert (await produce(client, topic, b"v", partition=1)).error_code == ErrorCode.NONE
    assert (await scrape(broker)).one("mainstem_partitions_offline") == 0


async def test_a_partition_is_tried_again_for_whoever_asks(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker()
    client = await connect(broker)
    topic = await create_topic(client)
    files = _block(broker, topic.name, 1, 2)
    grown = await client.call(CreatePartitionsRequest([CreatePartitionsTopic(topic.name, 3, None)], 10_000))
    assert grown.results[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    files[0].unlink()
    assert (await produce(client, topic, b"v", partition=1)).error_code == ErrorCode.NONE
    assert [unmade.part.partition for unmade in broker.node.replicas.unmade] == [2]
    await delete_topic(client, topic)
    assert broker.node.replicas.unmade == []


async def test_attempts_in_vain_are_few_whoever_asks(
    make_broker: MakeBroker, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainstem.broker.logs.maintenance._UNMADE_LOGS_SECONDS", 3600)
    broker = await make_broker()
    client = await connect(broker)
    _block(broker, "t", *range(50))
    assert (await _create(client, "t", 50))[0] == ErrorCode.KAFKA_STORAGE_ERROR
    topic = Topic("t", broker.node.image.topics_by_name["t"].topic_id)
    ns, attempts = 0, 0
    create = LogManager.create

    def slow(*args: Any, **options: Any) -> Log:
        nonlocal ns, attempts
        attempts += 1
        ns += 1_000_000
        return create(*args, **options)

    monkeypatch.setattr(LogManager, "create", slow)
    monkeypatch.setattr(Clock, "ticks_ns", lambda _: ns)
    everywhere = fetch_request({topic: [FetchPartition(index) for index in range(50)]})
    for expected in (1, 1, 2):
        answer = await client.call(everywhere)
        errors = {part.error_code for part in answer.responses[0].partitions}
        assert (errors, attempts) == ({ErrorCode.KAFKA_STORAGE_ERROR}, expected)
        ns += 10_000_000


async def test_a_start_goes_on_without_a_log_that_cannot_be_made(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker()
    client = await connect(broker)
    files = _block(broker, "t", 0)
    assert (await _create(client, "t", 2))[0] == ErrorCode.KAFKA_STORAGE_ERROR
    await broker.restart()
    client = await connect(broker)
    assert await _offline_replicas(client, "t") == {0: [1], 1: []}
    files[0].unlink()
    await eventually(lambda: not broker.node.replicas.unmade)


async def test_coordinators_begin_when_their_logs_are_made(make_broker: MakeBroker, connect: Connect) -> None:
    broker = await make_broker(METRICS | {"offsets.topic.num.partitions": 1})
    client = await connect(broker)
    files = _block(broker, CONSUMER_OFFSETS, 0)
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    for _ in range(2):
        (found,) = (await client.call(find)).coordinators
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    not_ready = await ask(metrics_port(broker), "/readyz")
    assert (not_ready.status, not_ready.body) == (
        503,
        f"coordinators could not begin: 1 of {CONSUMER_OFFSETS}\n",
    )
    files[0].unlink()
    await eventually(lambda: broker.node.coordinators.problem is None)
    (found,) = (await client.call(find)).coordinators
    assert (found.error_code, found.node_id) == (ErrorCode.NONE, 1)
    assert (await ask(metrics_port(broker), "/readyz")).status == 200


async def test_strays_are_set_aside_only_when_the_metadata_has_caught_up(
    make_broker: MakeBroker, connect: Connect
) -> None:
    """That is when everything is published that was committed at the start, and never before or after."""
    broker = await make_broker()
    client = await connect(broker)
    topic = await create_topic(client)
    manager = broker.node.log_manager
    config = broker.node.replicas.by_topic(topic.name, 0).log.config
    manager.create("ghost", 0, b"\x66" * 16, config, broker.node.clock.now_ms())
    await create_topic(client)
    assert manager.get("ghost", 0) is not None
    await broker.restart()
    manager = broker.node.log_manager
    assert manager.get("ghost", 0) is None
    assert manager.get(topic.name, 0) is not None
    assert [path.name for path in Path(broker.data_dir).glob("ghost-0.*-stray")]


async def test_replicas_of_brokers_that_are_not_there_are_offline(
    make_broker: MakeBroker, connect: Connect
) -> None:
    broker = await make_broker()
    topic = await create_topic(await connect(broker))
    (part,) = broker.node.image.topics_by_name[topic.name].partitions
    assert broker.node.offline_replicas(topic.name, part) == []
    assert broker.node.offline_replicas(topic.name, replace(part, replicas=(2, 1, 3))) == [2, 3]


async def test_a_topic_that_is_made_anew_under_its_name_begins_empty(
    make_broker: MakeBroker, connect: Connect
) -> None:
    """Whoever replays both at once, and did not decide them, has them in one change."""
    broker = await make_broker()
    client = await connect(broker)
    topic = await create_topic(client)
    await produce(client, topic, b"of the former one")
    delta = MetadataDelta(broker.node.image)
    new_id = b"\x77" * 16
    part = PartitionRecord(0, new_id, [1], [1], leader=1, leader_epoch=0, partition_epoch=0)
    delta.replay_all([RemoveTopicRecord(topic.topic_id), TopicRecord(topic.name, new_id), part])
    image = delta.build(broker.node.image.offset + 3, 1, 0)
    await broker.node.replicas.publish(image, delta.changes(image))
    partition = broker.node.replicas.by_topic(topic.name, 0)
    assert (partition.topic_id, partition.log.log_end_offset) == (new_id, 0)
    assert broker.node.replicas.by_topic_id(new_id, 0) is partition
    with pytest.raises(KafkaError):
        broker.node.replicas.by_topic_id(topic.topic_id, 0)


async def test_a_folder_that_cannot_be_removed_keeps_no_topic_alive(
    make_broker: MakeBroker, connect: Connect, tmp_path: Path
) -> None:
    dirs = f"{tmp_path / 'one'},{tmp_path / 'two'}"
    files = FailingFiles()
    broker = await make_broker({"log.dirs": dirs}, data_dir=tmp_path / "one", files=files)
    client = await connect(broker)
    topic = await create_topic(client, partitions=4)

    def broken(source: str, target: str) -> None:
        if "/two/" in str(source):
            raise OSError(errno.EIO, "Input/output error")
        os.rename(source, target)

    with files.exchanged(rename=broken):
        await delete_topic(client, topic)
    assert list(broker.node.replicas.all()) == []
    again = await create_topic(client, topic.name)
    assert (await produce(client, again, b"v")).error_code == ErrorCode.NONE
