"""Several log directories: where partitions go, what one that fails takes with it, and moves between them."""

import asyncio
import errno
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from mainstem.protocol.apis.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mainstem.protocol.apis.k10_find_coordinator import FindCoordinatorRequest
from mainstem.protocol.apis.k20_delete_topics import DeleteTopicState
from mainstem.protocol.apis.k34_alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from mainstem.protocol.apis.k35_describe_log_dirs import DescribeLogDirsRequest
from mainstem.protocol.errors import ErrorCode
from mainstem.records.batch import iter_headers
from mainstem.records.record import Record, build_batch, iter_records
from mainstem.storage.files.checkpoints import CLEANER_OFFSETS, read_offsets
from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.log import Log
from mainstem.testing import BrokerError
from mainstem.testing.in_process import InProcessBroker
from tests.broker.apis.test_administration import BROKER, SET, delete
from tests.broker.conftest import Connect, MakeBroker
from tests.broker.harness import (
    WAIT_SECONDS_MAX,
    Client,
    Topic,
    alter,
    create_topic,
    eventually,
    fetch,
    produce,
    produce_request,
    values_of,
    waiting_fetches,
)

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


async def two_dirs(make_broker: MakeBroker, tmp_path: Path, **settings: Any) -> InProcessBroker:
    dirs = f"{tmp_path / 'one'},{tmp_path / 'two'}"
    return await make_broker({"log.dirs": dirs, "log.initial.task.delay.ms": 3_600_000} | settings)


async def move(client: Client, topic: str, path: Path | str, index: int = 0, version: int = 2) -> int:
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=[index])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(path), topics=topics)])
    (result,) = (await client.call(request, version)).results
    assert result.topic_name == topic
    return int(result.partitions[0].error_code)


async def places(client: Client, topic: str) -> dict[str, list[tuple[int, bool]]]:
    """The partitions of a topic by the name of their directory, and whether they are still on their way."""
    response = await client.call(DescribeLogDirsRequest(topics=None))
    found: dict[str, list[tuple[int, bool]]] = {}
    for directory in response.results:
        for described in directory.topics:
            if described.name == topic:
                name = Path(directory.log_dir).name
                found[name] = [(part.partition_index, part.is_future_key) for part in described.partitions]
    return found


async def until_moved(broker: InProcessBroker) -> None:
    await eventually(lambda: not broker.node.log_dir_moves._tasks, "the end of the moves")


def _is_recorded(broker: InProcessBroker, topic: Topic) -> bool:
    """Whether the metadata knows in which directories the partitions are."""
    manager = broker.node.log_manager
    metas = [manager.dir_of(log).meta for log in manager if log.topic == topic.name]
    parts = broker.node.image.topics_by_name[topic.name].partitions
    return [part.directories for part in parts] == [(meta.directory_id,) for meta in metas if meta]


# ---- where partitions go


async def test_new_partitions_go_where_the_fewest_are(
    make_broker: MakeBroker, connect: Connect, tmp_path: Path
) -> None:
    broker = await two_dirs(make_broker, tmp_path)
    client = await connect(broker)
    first = await create_topic(client, partitions=3)
    second = await create_topic(client, partitions=3)
    assert await places(client, first.name) == {"one": [(0, False), (2, False)], "two": [(1, False)]}
    assert await places(client, second.name) == {"two": [(0, False), (2, False)], "one": [(1, False)]}
    texts = [(tmp_path / name / "meta.properties").read_text() for name in ("one", "two")]
    assert len({text.partition("directory.id=")[2][:22] for text in texts}) == 2
    await eventually(lambda: all(_is_recorded(broker, topic) for topic in (first, second)))


# ---- a directory that fails


async def _spread(client: Client) -> Topic:
    """A topic with partition 0 and 2 in the first directory and 1 and 3 in the second."""
    topic = await create_topic(client, partitions=4)
    for index in range(4):
        assert (await produce(client, topic, b"kept", partition=index)).error_code == 0
    return topic


async def test_a_failing_directory_takes_its_partitions_offline_and_no_others(
    make_broker: MakeBroker, connect: Connect, tmp_path: Path
) -> None:
    broker = await two_dirs(make_broker, tmp_path)
    client, waiting = await connect(broker), await connect(broker)
    topic = await _spread(client)
    parked = asyncio.ensure_future(
        fetch(waiting, topic, offset=1, partition=1, max_wait_ms=30_000, min_bytes=1)
    )
    await eventually(lambda: waiting_fetches(broker, topic, 1) == 1)
    broker.node.log_manager.dirs[1].health.fail("the disk is on fire")
    assert (await parked).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    for index, code in enumerate((0, ErrorCode.KAFKA_STORAGE_ERROR) * 2):
        assert (await produce(client, topic, b"more", partition=index)).error_code == code
        assert (await fetch(client, topic, partition=index)).error_code == code
    one, two = (await client.call(DescribeLogDirsRequest(topics=None))).results
    assert (one.error_code, two.error_code, two.topics) == (0, ErrorCode.KAFKA_STORAGE_ERROR, [])
    new = await create_topic(client, partitions=2)
    assert await places(client, new.name) == {"one": [(0, False), (1, False)]}
    assert not broker.node.dead.is_set()
    broker.node.log_manager.dirs[0].health.fail("the other one too")
    await eventually(broker.node.dead.is_set)


@pytest.mark.parametrize("damage", ["vanished", "replaced", "a file"])
async def test_a_directory_that_cannot_be_used_at_the_start(
    make_broker: MakeBroker, connect: Connect, tmp_path: Path, damage: str
) -> None:
    """Its partitions are offline and never begin again empty; others, also of the same topic, are served."""
    broker = await two_dirs(make_broker, tmp_path)
    client = await connect(broker)
    topic = await _spread(client)
    await broker.stop()
    (tmp_path / "two").rename(tmp_path / "aside")
    if damage == "replaced":
        (tmp_path / "two").mkdir()
    else:
        (tmp_path / "two").write_text("not a directory")
    if damage == "vanished":
        (tmp_path / "two").unlink()
    await broker.start()
    client = await connect(broker)
    for index, code in enumerate((0, ErrorCode.KAFKA_STORAGE_ERROR) * 2):
        assert (await fetch(client, topic, partition=index)).error_code == code, index
        assert (await produce(client, topic, b"more", partition=index)).error_code == code
    await broker.stop()
    if damage == "a file":
        (tmp_path / "two").unlink()
    else:
        shutil.rmtree(tmp_path / "two")
    (tmp_path / "aside").rename(tmp_path / "two")
    await broker.start()
    client = await connect(broker)
    for index, values in enumerate(([b"kept", b"more"], [b"kept"]) * 2):
        assert values_of((await fetch(client, topic, partition=index)).records) == values


async def test_a_log_that_was_loaded_before_its_directory_failed_is_offline(
    make_broker: MakeBroker, connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await two_dirs(make_broker, tmp_path)
    topic = await _spread(await connect(broker))
    await broker.stop()
    open_log = Log.open

    def broken(directory: Path, *args: Any, **options: Any) -> Log:
        if directory.name == f"{topic.name}-3":
            raise OSError(errno.EIO, "Input/output error")
        return open_log(directory, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Log, "open", staticmethod(broken))
        await broker.start()
    client = await connect(broker)
    for index, code in enumerate((0, ErrorCode.KAFKA_STORAGE_ERROR) * 2):
        asked = ListOffsetsTopic(name=topic.name, partitions=[ListOffsetsPartition(index, timestamp=-1)])
        answer = await client.call(ListOffsetsRequest(topics=[asked]))
        assert answer.topics[0].partitions[0].error_code == code, index
        assert (await fetch(client, topic, partition=index)).error_code == code


async def test_groups_go_on_whose_offsets_are_in_a_directory_that_works(
    make_broker: MakeBroker, connect: Connect, tmp_path: Path
) -> None:
    """The others are told that there is no coordinator, while the broker runs and after a start."""

    async def coordinators(client: Client) -> dict[int, int]:
        """The error code of FindCoordinator by the partition of the group."""
        groups = [f"group-{number}" for number in range(8)]
        while True:
            answer = await client.call(FindCoordinatorRequest(coordinator_keys=groups))
            codes = {
                broker.node.groups.partition_of(found.key): found.error_code for found in answer.coordinators
            }
            if set(codes) == {0, 1, 2, 3}:
                return codes

    broker = await two_dirs(make_broker, tmp_path, **{"offsets.topic.num.partitions": 4})
    client = await connect(broker)
    assert set((await coordinators(client)).values()) == {0}
    await eventually(lambda: _is_recorded(broker, Topic("__consumer_offsets", b"")))
    broker.node.log_manager.dirs[1].health.fail("for the test")
    missing = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await coordinators(client) == {0: 0, 1: missing, 2: 0, 3: missing}
    await broker.stop()
    shutil.rmtree(tmp_path / "two")
    await broker.start()
    client = await connect(broker)
    assert await coordinators(client) == {0: 0, 1: missing, 2: 0, 3: missing}


async def test_without_the_directory_of_the_metadata_nothing_starts(
    make_broker: MakeBroker, tmp_path: Path
) -> None:
    broker = await two_dirs(make_broker, tmp_path)
    await broker.stop()
    (tmp_path / "one").rename(tmp_path / "aside")
    (tmp_path / "one").write_text("not a directory")
    with pytest.raises(BrokerError, match="the metadata log cannot be read: cannot use log directory"):
        await broker.start()


async def test_a_directory_that_is_replaced_while_the_broker_runs_is_offline(
    make_broker: MakeBroker, connect: Connect, tmp_path: Path
) -> None:
    broker = await two_dirs(make_broker, tmp_path)
    client = await connect(broker)
    topic = await _spread(client)
    (tmp_path / "two").rename(tmp_path / "aside")
    (tmp_path / "two").mkdir()
    broker.node.log_manager.checkpoint()
    assert (await produce(client, topic, b"more", partition=1)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (await produce(client, topic, b"more", partition=0)).error_code == 0


# ---- moving


@pytest.mark.parametrize("version", [1, 2])
async def test_a_partition_moves_while_it_is_written_and_read(
    make_broker: MakeBroker, connect: Connect, tmp_path: Path, version: int
) -> None:
    broker = await two_dirs(make_broker, tmp_path)
    client = await connect(broker)
    topic = await create_topic(client)
    written = 0
    for _ in range(50):
        await produce(client, topic, b"x" * 10_000)
        written += 1
    assert await move(client, topic.name, tmp_path / "two", version=version) == 0
    while broker.node.log_manager.moves:
        assert (await produce(client, topic, b"x" * 10_000)).base_offset == written
        written += 1
    await until_moved(broker)
    assert (await produce(client, topic, b"last")).base_offset == written
    assert await places(client, topic.name) == {"two": [(0, False)]}
    assert not (tmp_path / "one" / f"{topic.name}-0").exists()
    await broker.restart()
    client = await connect(broker)
    assert await places(client, topic.name) == {"two": [(0, False)]}
    assert values_of((await fetch(client, topic, offset=written)).records) == [b"last"]
    assert (await fetch(client, topic, offset=0)).high_watermark == written + 1


async def test_a_slow_move_is_seen_called_off_and_begun_again(
    make_broker: MakeBroker, connect: Connect, tmp_path: Path
) -> None:
    broker = await two_dirs(make_broker, tmp_path)
    client = await connect(broker)
    topic = await create_topic(client, configs={"internal.segment.bytes": "100000"})
    for _ in range(60):
        await produce(client, topic, b"x" * 10_000)
    assert await alter(client, BROKER, "", (RATE, SET, "100000")) == 0
    assert await move(client, topic.name, tmp_path / "two") == 0
    assert await move(client, topic.name, tmp_path / "two") == 0  # it is on its way already
    assert await places(client, topic.name) == {"one": [(0, False)], "two": [(0, True)]}
    (coming,) = (await client.call(DescribeLogDirsRequest(topics=None))).results[1].topics[0].partitions
    assert 0 < coming.offset_lag <= 60
    assert await move(client, topic.name, tmp_path / "one") == 0
    assert await places(client, topic.name) == {"one": [(0, False)]}
    assert await move(client, topic.name, tmp_path / "two") == 0
    await broker.restart()  # a restart begins it anew
    client = await connect(broker)
    assert await places(client, topic.name) == {"one": [(0, False)], "two": [(0, True)]}
    assert await alter(client, BROKER, "", (RATE, SET, "1000000000")) == 0
    await until_moved(broker)
    assert await places(client, topic.name) == {"two": [(0, False)]}
    assert (await produce(client, topic, b"last")).base_offset == 60


async def test_a_partition_moves_while_it_is_compacted(
    make_broker: MakeBroker, connect: Connect, tmp_path: Path
) -> None:
    settings = {"log.cleaner.backoff.ms": 5, "log.cleaner.min.cleanable.ratio": 0.01}
    broker = await two_dirs(make_broker, tmp_path, **settings)
    client = await connect(broker)
    topic = await create_topic(
        client, configs={"cleanup.policy": "compact", "internal.segment.bytes": "20000"}
    )
    log = broker.node.replicas.by_topic(topic.name, 0).log
    latest: dict[bytes, bytes] = {}

    async def write() -> None:
        key, value = b"key %d" % (log.log_end_offset % 7), b"%d " % log.log_end_offset * 50
        data = bytes(build_batch([Record(0, time.time_ns() // 1_000_000, key, value)]))
        await client.call(produce_request(topic, {0: data}))
        latest[key] = value

    def is_cleaned() -> bool:
        state = broker.node.cleaner.state_of(broker.node.replicas.by_topic(topic.name, 0))
        return state is not None and state.clean_bytes > 0

    for _ in range(200):
        await write()
    deadline = time.monotonic() + 2 * WAIT_SECONDS_MAX  # a process has to start first
    while not is_cleaned():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    for name in ("two", "one", "two"):
        for _ in range(100):
            await write()
        clean_offset = broker.node.cleaner.clean_offset_of(log)
        assert await move(client, topic.name, tmp_path / name) == 0
        for _ in range(300):  # without an end, the writer could stay ahead of a slow disk
            if broker.node.log_manager.moves:
                await write()
        await until_moved(broker)
        assert Path(log.directory).parent.name == name
        assert clean_offset is not None
        assert (broker.node.cleaner.clean_offset_of(log) or 0) >= clean_offset
    await until_moved(broker)
    assert broker.node.cleaner.uncleanable == {}
    assert broker.node.log_manager.online_dirs == broker.node.log_manager.dirs
    await broker.restart()
    assert read_offsets(RealFiles(), tmp_path / "one" / CLEANER_OFFSETS) == {}
    client = await connect(broker)
    found: dict[bytes | None, bytes | None] = {}
    offset = 0
    while offset < (await fetch(client, topic, offset=offset)).high_watermark:
        data = (await fetch(client, topic, offset=offset)).records
        assert isinstance(data, bytes | bytearray | memoryview)
        for at, header in iter_headers(data):
            found.update((record.key, record.value) for record in iter_records(data[at : at + header.size]))
            offset = header.next_offset
    assert found == latest


async def test_a_deleted_topic_stops_moving(
    make_broker: MakeBroker, connect: Connect, tmp_path: Path
) -> None:
    broker = await two_dirs(make_broker, tmp_path)
    client = await connect(broker)
    await alter(client, BROKER, "", (RATE, SET, "1000"))
    topic = await create_topic(client)
    await produce(client, topic, b"x" * 900_000)
    assert await move(client, topic.name, tmp_path / "two") == 0
    assert await delete(client, DeleteTopicState(name=topic.name)) == [0]
    await until_moved(broker)
    assert not list((tmp_path / "two").glob("*-future"))
    assert broker.node.log_manager.online_dirs == broker.node.log_manager.dirs


async def test_what_cannot_be_moved_is_refused(
    make_broker: MakeBroker, connect: Connect, tmp_path: Path
) -> None:
    broker = await two_dirs(make_broker, tmp_path)
    client = await connect(broker)
    topic = await create_topic(client)
    long = await create_topic(client, name="x" * 249)
    assert await move(client, topic.name, tmp_path / "three") == ErrorCode.LOG_DIR_NOT_FOUND
    assert await move(client, topic.name, "two") == ErrorCode.LOG_DIR_NOT_FOUND
    assert await move(client, "no-such-topic", tmp_path / "two") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await move(client, topic.name, tmp_path / "two", index=1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await move(client, long.name, tmp_path / "two") == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert await move(client, topic.name, tmp_path / "one") == 0  # it is there
    broker.node.log_manager.dirs[1].health.fail("for the test")
    assert await move(client, topic.name, tmp_path / "two") == ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.node.log_manager.moves == {}
