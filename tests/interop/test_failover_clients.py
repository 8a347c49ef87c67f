"""Real clients under load while the leader of a partition is killed and comes back: they see no error, and
all that was acknowledged is there, in order.

confluent-kafka goes through many more faults in tests/faults/.
"""

import asyncio
import json
import subprocess
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from kafka import KafkaConsumer, KafkaProducer
from pyarrow import RecordBatch
from pyspark.sql import SparkSession

from mainstem.testing import Cluster
from tests.faults.cluster_faults import SETTINGS
from tests.faults.cluster_load import SteadyLoad, read_topic
from tests.support.group_views import until
from tests.support.kafka_peer import kafka_command, program
from tests.support.spark import spark_session
from tests.support.target import unique_name

pytestmark = pytest.mark.timeout(300)

PARTITIONS = 3
COPIES = 3
FURTHER = 20  # records of each partition, before, during and after a failover
_PAUSE_S = 0.005
_REQUEST_SECONDS = 30
_KCAT_READS_BYTES = 4096  # it waits for so many before it looks for the ends of lines


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, SETTINGS) as cluster:
        yield cluster


@pytest.fixture
def spark() -> SparkSession:
    return spark_session()


# ---- the failover


def make_topic(cluster: Cluster, leader: int) -> str:
    """A topic of which this node leads the first partition, and the others lead the others."""
    name = unique_name("failover")
    nodes = sorted(cluster.node_ids, key=lambda node: (node - leader) % COPIES)
    placed = [[*nodes[number:], *nodes[:number]] for number in range(PARTITIONS)]
    new = NewTopic(name, num_partitions=PARTITIONS, replica_assignment=placed)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    admin.create_topics([new])[name].result(_REQUEST_SECONDS)
    return name


def fail_over(cluster: Cluster, topic: str, done: Callable[[], int], further: int = FURTHER) -> None:
    """Kill who leads the first partition, and start it again, while `done` grows on."""
    await_growth(done, further)
    leader = cluster.leader_of(topic, 0)
    cluster.kill(leader)
    assert cluster.leader_of(topic, 0) != leader
    await_growth(done, further)
    cluster.start(leader)
    await_growth(done, further)


def await_growth(done: Callable[[], int], further: int) -> None:
    before = done()
    until(lambda: done() >= before + further, lambda: f"more than {done() - before} of {further}")


class Ledger:
    """Numbers that are sent one after the other in turn to the partitions, and what became of them."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.sent = 0
        self.acknowledged: dict[tuple[int, int], int] = {}
        self.read: dict[int, list[int]] = defaultdict(list)  # by partition
        self.errors: list[str] = []

    def next(self) -> tuple[int, bytes, int]:
        """The next number, as a value, and where it goes."""
        number = self.sent
        self.sent += 1
        return number, b"%d" % number, number % PARTITIONS

    def acknowledge(self, number: int, partition: int, offset: int) -> None:
        place = partition, offset
        if self.acknowledged.setdefault(place, number) != number:
            self.errors.append(f"{place} was given to {self.acknowledged[place]} and to {number}")

    def note(self, partition: int, value: bytes | None) -> None:
        self.read[partition].append(int(value or b""))

    def done(self) -> int:
        """How many of each partition were acknowledged, and read as well."""
        self.check()
        acknowledged = Counter(partition for partition, _ in list(self.acknowledged))
        return min(min(acknowledged[number], len(self.read[number])) for number in range(PARTITIONS))

    def count_read(self) -> int:
        return sum(map(len, self.read.values()))

    def check(self) -> None:
        assert not self.errors, self.errors[:5]

    def check_all(self, cluster: Cluster) -> None:
        """All that was sent is there once and in order, where it was acknowledged, and was read so."""
        self.check()
        assert len(self.acknowledged) == self.sent
        found = read_topic(cluster.bootstrap_servers, self.topic, PARTITIONS)
        assert found == self.acknowledged
        until(lambda: self.count_read() >= self.sent, lambda: f"{self.sent - self.count_read()} to be read")
        assert self.read == in_order(found)


def in_order(found: dict[tuple[int, int], int]) -> dict[int, list[int]]:
    """The numbers of each partition, which must have got them as they were sent."""
    partitions: dict[int, list[int]] = defaultdict(list)
    for (partition, _), number in sorted(found.items()):
        partitions[partition].append(number)
    assert all(numbers == sorted(numbers) for numbers in partitions.values())
    return partitions


class Worker:
    """Works in a thread until it is told to end; what it raises is an error in the ledger."""

    def __init__(self, work: Callable[[Ledger, Event], None], ledger: Ledger) -> None:
        self._stop = Event()
        self._thread = Thread(target=self._run, args=(work, ledger), daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[Ledger, Event], None], ledger: Ledger) -> None:
        try:
            work(ledger, self._stop)
        except Exception as error:
            ledger.errors.append("".join(traceback.format_exception(error)))

    def end(self) -> None:
        self._stop.set()
        self._thread.join(_REQUEST_SECONDS)
        assert not self._thread.is_alive(), "it does not end"


# ---- Python


def test_kafka_python(cluster: Cluster) -> None:
    """The node that is killed is the active controller, too."""
    servers = cluster.bootstrap_servers

    def produce(ledger: Ledger, stop: Event) -> None:
        producer = KafkaProducer(
            bootstrap_servers=servers, acks="all", enable_idempotence=True, linger_ms=1, retry_backoff_ms=50
        )
        while not stop.is_set():
            number, value, partition = ledger.next()
            future = producer.send(ledger.topic, value, partition=partition)
            future.add_callback(
                lambda sent, number=number: ledger.acknowledge(number, sent.partition, sent.offset)
            )
            future.add_errback(lambda error: ledger.errors.append(repr(error)))
            stop.wait(_PAUSE_S)
        producer.flush(_REQUEST_SECONDS)
        producer.close()

    def consume(ledger: Ledger, stop: Event) -> None:
        consumer = KafkaConsumer(
            ledger.topic,
            bootstrap_servers=servers,
            group_id=ledger.topic,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=100,
            retry_backoff_ms=50,
        )
        while not stop.is_set():
            for records in consumer.poll(timeout_ms=100).values():
                for record in records:
                    ledger.note(record.partition, record.value)
        consumer.close()

    go_through(cluster, Ledger(make_topic(cluster, cluster.controller())), produce, consume)


def go_through(
    cluster: Cluster,
    ledger: Ledger,
    produce: Callable[[Ledger, Event], None],
    consume: Callable[[Ledger, Event], None],
) -> None:
    producer, consumer = Worker(produce, ledger), Worker(consume, ledger)
    fail_over(cluster, ledger.topic, ledger.done)
    producer.end()
    ledger.check_all(cluster)
    consumer.end()
    ledger.check()


@pytest.mark.parametrize("kind", ["idempotent", "transactional"])
def test_aiokafka(cluster: Cluster, kind: str) -> None:
    servers = cluster.bootstrap_servers

    async def produce_each(ledger: Ledger, stop: Event) -> None:
        async with AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True) as producer:
            waiting = []
            while not stop.is_set():
                waiting.append(await begin_send(producer, ledger))
                await asyncio.sleep(_PAUSE_S)
            await asyncio.gather(*waiting)

    async def begin_send(producer: AIOKafkaProducer, ledger: Ledger) -> asyncio.Future[Any]:
        number, value, partition = ledger.next()
        sending = await producer.send(ledger.topic, value, partition=partition)

        async def acknowledged() -> None:
            sent = await sending
            ledger.acknowledge(number, sent.partition, sent.offset)

        return asyncio.ensure_future(acknowledged())

    async def produce_in_transactions(ledger: Ledger, stop: Event) -> None:
        async with AIOKafkaProducer(bootstrap_servers=servers, transactional_id=ledger.topic) as producer:
            while not stop.is_set():
                numbered = [ledger.next() for _ in range(PARTITIONS)]
                async with producer.transaction():
                    sending = [
                        await producer.send(ledger.topic, value, partition=partition)
                        for _, value, partition in numbered
                    ]
                    sent = await asyncio.gather(*sending)
                for (number, _, partition), where in zip(numbered, sent, strict=True):
                    ledger.acknowledge(number, partition, where.offset)
                await asyncio.sleep(_PAUSE_S)

    async def consume(ledger: Ledger, stop: Event) -> None:
        async with AIOKafkaConsumer(
            ledger.topic,
            bootstrap_servers=servers,
            group_id=ledger.topic,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=100,
            isolation_level="read_committed",
        ) as consumer:
            while not stop.is_set():
                for records in (await consumer.getmany(timeout_ms=100)).values():
                    for record in records:
                        ledger.note(record.partition, record.value)

    produce = produce_each if kind == "idempotent" else produce_in_transactions
    leader = 1 + cluster.controller() % COPIES
    go_through(
        cluster,
        Ledger(make_topic(cluster, leader)),
        lambda ledger, stop: asyncio.run(produce(ledger, stop)),
        lambda ledger, stop: asyncio.run(consume(ledger, stop)),
    )


# ---- Java and kcat


@pytest.mark.peer
def test_java(cluster: Cluster, tmp_path: Path) -> None:
    """Kafka's own producer and consumer, in the programs by which Apache Kafka tests them."""
    ledger = Ledger(make_topic(cluster, cluster.controller()))
    where = ["--bootstrap-server", cluster.bootstrap_servers, "--topic", ledger.topic]
    # The program would have the producer give up at once, which is no default of the producer.
    retrying = tmp_path / "producer.properties"
    retrying.write_text("retries=2147483647\nenable.idempotence=true\n")
    rate = ["--throughput", "200", "--acks", "-1", "--command-config", str(retrying)]
    group = ["--group-id", ledger.topic, "--reset-policy", "earliest", "--verbose"]

    def hear(line: str) -> None:
        event: dict[str, Any] = json.loads(line) if line.startswith("{") else {"name": "a line of the log"}
        match event["name"]:
            case "producer_send_success":
                ledger.acknowledge(int(event["value"]), event["partition"], event["offset"])
            case "record_data":
                ledger.note(event["partition"], event["value"].encode())
            case "tool_data":
                ledger.sent = event["sent"]
            case "producer_send_error":
                ledger.errors.append(line)
            case "offsets_committed" if not event["success"]:
                ledger.errors.append(line)

    consumer = Program(kafka_command("VerifiableConsumer", *where, *group), ledger, hear)
    producer = Program(kafka_command("VerifiableProducer", *where, *rate), ledger, hear)
    with consumer, producer:
        fail_over(cluster, ledger.topic, ledger.done)
        producer.end()
        ledger.check_all(cluster)


class Program:
    """A process whose lines are heard as they come; what is not understood is an error in the ledger."""

    def __init__(self, command: list[str], ledger: Ledger, hear: Callable[[str], None]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._ledger = ledger
        self._hear = hear
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                self._hear(line)
            except (ValueError, KeyError):
                self._ledger.errors.append(line)

    def write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def finish(self) -> int:
        """There is nothing more to write; returns the exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(_REQUEST_SECONDS)
        self._thread.join(_REQUEST_SECONDS)
        return code

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(_REQUEST_SECONDS)
        self._thread.join(_REQUEST_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


@pytest.mark.peer
def test_kcat(cluster: Cluster) -> None:
    ledger = Ledger(make_topic(cluster, cluster.controller()))
    kcat = [program("kcat"), "-b", cluster.bootstrap_servers, "-t", ledger.topic, "-q"]
    idempotent = ["-X", "acks=all", "-X", "enable.idempotence=true", "-X", "linger.ms=1"]

    def hear(line: str) -> None:
        partition, offset, value = line.split()
        ledger.acknowledge(int(value), int(partition), int(offset))
        ledger.note(int(partition), value.encode())

    def produce(ledger: Ledger, stop: Event) -> None:
        while not stop.is_set():
            _, value, _ = ledger.next()
            producer.write(f"{value.decode():0>{_KCAT_READS_BYTES // 4}}\n")
            stop.wait(_PAUSE_S)

    producer = Program([*kcat, "-P", *idempotent], ledger, ledger.errors.append)
    consumer = Program([*kcat, "-C", "-o", "beginning", "-u", "-f", "%p %o %s\n"], ledger, hear)
    with consumer, producer:
        writing = Worker(produce, ledger)
        fail_over(cluster, ledger.topic, ledger.done)
        writing.end()
        assert producer.finish() == 0
        until(lambda: len(ledger.acknowledged) >= ledger.sent, "the rest to be read")
        ledger.check_all(cluster)


# ---- Spark


@pytest.mark.peer
def test_a_spark_query_from_topic_to_topic(cluster: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    """The node that is killed leads in both topics, and is the active controller."""
    servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
    source, sink = (make_topic(cluster, cluster.controller()) for _ in range(2))
    load = SteadyLoad(cluster.bootstrap_servers, source, PARTITIONS, 200, idempotent=True)
    rows = spark.readStream.format("mainstem").options(
        **servers, subscribe=source, startingOffsets="earliest"
    )
    exactly_once = {"topic": sink, "exactlyOnce": "true", "checkpointLocation": str(tmp_path)}
    writing = rows.load().select("partition", "value").writeStream.format("mainstem")
    query = writing.options(**servers, **exactly_once).start()

    def batches() -> int:
        assert query.isActive, query.exception()
        return query.lastProgress["batchId"] if query.lastProgress else -1

    fail_over(cluster, source, batches, further=2)
    load.end()
    query.processAllAvailable()
    query.stop()
    assert load.problems() == []
    copied, sent = (in_order(read_topic(cluster.bootstrap_servers, it, PARTITIONS)) for it in (sink, source))
    assert copied == sent


@pytest.mark.peer
def test_a_spark_batch(cluster: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    """It is read again while the node is away."""
    count, tasks, leader = 60_000, 4, 1 + cluster.controller() % COPIES
    ledger, is_killed = Ledger(make_topic(cluster, leader)), tmp_path / "killed"
    servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers}

    def kill(ledger: Ledger, stop: Event) -> None:
        until(lambda: end_offsets(cluster, ledger.topic), "the first rows")
        cluster.kill(leader)
        is_killed.touch()

    def hold_back(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """The first tasks write before, the others after it."""
        for batch in batches:
            while int(batch["value"][0].as_py()) >= count // 2 and not is_killed.exists():
                time.sleep(_PAUSE_S)
            yield batch

    rows = spark.range(0, count, 1, tasks).selectExpr(
        "cast(id as string) as value", f"cast(id % {PARTITIONS} as int) as partition"
    )
    rows = rows.mapInArrow(hold_back, rows.schema)
    killer = Worker(kill, ledger)
    rows.write.format("mainstem").mode("append").options(**servers, topic=ledger.topic).save()
    killer.end()
    ledger.check()
    read = spark.read.format("mainstem").options(**servers, subscribe=ledger.topic).load()
    assert read.selectExpr("count(distinct value)", "count(*)").collect() == [(count, count)]
    cluster.start(leader)
    found = read_topic(cluster.bootstrap_servers, ledger.topic, PARTITIONS)
    assert sorted(found.values()) == list(range(count))


def end_offsets(cluster: Cluster, topic: str) -> int:
    """How many records are committed in all partitions together."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(PARTITIONS)}
    return sum(future.result().offset for future in admin.list_offsets(asked).values())
