"""Brokers of both kinds in one cluster, under a controller of either: each follows the other, takes over when
it is gone, and has the same bytes in the end.
"""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from mainstem.records.batch import read_header
from mainstem.records.compression import Codec
from tests.faults.cluster_load import SteadyLoad, make_topic
from tests.interop.metadata_shell import comparable, rendered, shown
from tests.interop.mixed_brokers import (
    COMPACTED,
    CONTROLLER,
    KAFKA,
    MAINSTEM,
    WAIT_SECONDS,
    Clients,
    Mixed,
    TransactionLoad,
)

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]

CODECS = ("lz4", "zstd", "gzip", "snappy")
LOAD_PARTITIONS = 2
PER_SECOND = 100
COMMITTED = "committed"
METADATA = "__cluster_metadata-0"
INTERNAL = ("__consumer_offsets", "__transaction_state")


@pytest.fixture(params=["mainstem-controls", "kafka-controls"])
def mixed(request: pytest.FixtureRequest, runner: asyncio.Runner, tmp_path: Path) -> Iterator[Mixed]:
    foreign = {KAFKA} if request.param == "mainstem-controls" else {CONTROLLER, KAFKA}
    nodes = Mixed(tmp_path / "cluster", foreign)
    yield nodes
    runner.run(nodes.stop())
    for node_id in foreign:
        with suppress(FileNotFoundError):  # it is ended already
            runner.run(nodes.kill(node_id))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            with suppress(KafkaException):
                if await asyncio.to_thread(condition):
                    return
            await asyncio.sleep(0.1)


def led_by_both(clients: Clients, topic: str) -> bool:
    """And both are in sync."""
    replicas = clients.replicas(topic)
    in_sync = all(isr == [MAINSTEM, KAFKA] for _, isr in replicas)
    return in_sync and {leader for leader, _ in replicas} == {MAINSTEM, KAFKA}


def all_in_sync(clients: Clients) -> bool:
    topics = {topic for topic, _ in clients.partitions()}
    return all(isr == [MAINSTEM, KAFKA] for topic in topics for _, isr in clients.replicas(topic))


def all_led_by(clients: Clients, node_id: int) -> bool:
    topics = {topic for topic, _ in clients.partitions()}
    return all(leader == node_id for topic in topics for leader, _ in clients.replicas(topic))


class Loads:
    """A producer for each codec, one of a compacted topic, and transactions; all through the whole test."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._steady: list[SteadyLoad] = []
        for codec in CODECS:
            make_topic(bootstrap_servers, codec, LOAD_PARTITIONS, 2)
        make_topic(bootstrap_servers, "compacted", LOAD_PARTITIONS, 2, COMPACTED)
        make_topic(bootstrap_servers, COMMITTED, LOAD_PARTITIONS, 2)
        for topic in (*CODECS, "compacted"):
            keys = 10 if topic == "compacted" else 0
            codec = "lz4" if topic == "compacted" else topic
            options = {"compression.type": codec, "linger.ms": 50}
            self._steady.append(
                SteadyLoad(
                    bootstrap_servers,
                    topic,
                    LOAD_PARTITIONS,
                    PER_SECOND,
                    idempotent=True,
                    keys=keys,
                    width=200,
                    options=options,
                )
            )
        self._transactions = TransactionLoad(bootstrap_servers, COMMITTED, LOAD_PARTITIONS)

    def go_on(self) -> None:
        """Each has got on by some."""
        for load in self._steady:
            load.await_acknowledged(50)
        self._transactions.await_committed(30)

    def end(self) -> None:
        for load in self._steady:
            load.end()
        self._transactions.end()

    def problems(self) -> list[str]:
        self._steady[-1].await_compacted()
        found = self._transactions.problems()
        return [*found, *(problem for load in self._steady for problem in load.problems())]


def assert_same_logs(mixed: Mixed, ends: dict[tuple[str, int], int]) -> None:
    """Of both brokers, stopped, below the high watermark."""
    for (topic, part), end in ends.items():
        if topic == "compacted":
            assert mixed.newest(MAINSTEM, topic, part, end) == mixed.newest(KAFKA, topic, part, end)
            continue
        ours, theirs = (mixed.batches(node_id, topic, part, end) for node_id in (MAINSTEM, KAFKA))
        assert ours == theirs, f"{topic}-{part}"
        if topic in CODECS:
            assert Codec[topic.upper()] in {read_header(batch).attributes & 7 for batch in ours}


async def newest_snapshot(mixed: Mixed, node_id: int, offset: int) -> Path:
    """One that holds this record and is not written to any more; ours make one when they are asked."""
    folder = mixed.directory(node_id) / METADATA
    if node_id not in mixed.foreign:
        identity = await mixed.running[node_id].server.metadata_log.take_snapshot()
        return folder / identity.file_name

    def newest() -> str:
        return max(path.name for path in folder.glob("*.checkpoint"))

    await until(lambda: newest() > f"{offset + 1:020d}")
    return folder / newest()


async def assert_same_metadata(mixed: Mixed, folder: Path) -> None:
    """kafka-shell shows of the snapshots of the controller and of our broker, which only observes, what our
    broker knows.
    """
    image = mixed.running[MAINSTEM].server.image
    known = rendered(image)
    assert len([name for name in known if name.startswith("cluster/brokers/")]) == 2
    for node_id in (MAINSTEM, CONTROLLER):
        snapshot = await newest_snapshot(mixed, node_id, image.offset)
        # A copy, since kafka-shell locks the directory of what it reads.
        copy = Path(shutil.copy(snapshot, folder / f"{node_id}-{snapshot.name}"))
        assert comparable(await asyncio.to_thread(shown, copy)) == known, node_id


async def test_each_follows_the_other_and_takes_over(mixed: Mixed, tmp_path: Path) -> None:
    await mixed.start()
    clients = Clients(mixed.bootstrap_servers)
    await until(lambda: clients.brokers() == {MAINSTEM, KAFKA})
    written: dict[str, set[bytes]] = {}
    for topic, server in (("by-mainstem", MAINSTEM), ("by-kafka", KAFKA)):
        await asyncio.to_thread(clients.create, f"127.0.0.1:{mixed.port(server)}", topic)
        await until(partial(led_by_both, clients, topic))
        written[topic] = await asyncio.to_thread(clients.produce, topic, "first", 1000)
        written[topic] |= await asyncio.to_thread(clients.produce_in_transactions, topic)
    loads = await asyncio.to_thread(Loads, mixed.bootstrap_servers)
    await asyncio.to_thread(loads.go_on)
    for topic in INTERNAL:
        await until(partial(led_by_both, clients, topic))
    for gone, left in ((MAINSTEM, KAFKA), (KAFKA, MAINSTEM)):
        await mixed.kill(gone)
        await until(partial(all_led_by, clients, left))
        for topic in written:
            written[topic] |= await asyncio.to_thread(clients.produce, topic, f"without-{gone}", 300)
        await asyncio.to_thread(loads.go_on)
        await mixed.begin(gone)
        await until(partial(all_in_sync, clients))
        await asyncio.to_thread(loads.go_on)
    await asyncio.to_thread(loads.end)
    assert await asyncio.to_thread(loads.problems) == []
    for topic, values in written.items():
        found = await asyncio.to_thread(clients.read, topic)
        assert len(found) == len(values)
        assert set(found) == values
    await until(partial(all_in_sync, clients))
    await assert_same_metadata(mixed, tmp_path)
    ends = await asyncio.to_thread(clients.ends)
    assert all(any(ends[name] for name in ends if name[0] == topic) for topic in INTERNAL)
    await mixed.stop(MAINSTEM)
    await mixed.kill(KAFKA, kindly=True)
    assert_same_logs(mixed, ends)
