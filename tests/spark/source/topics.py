"""Topics with everything in them that a reader must get right, and the source without a JVM."""

import pickle
import uuid
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from mainstem.spark.datasource import MainstemDataSource
from mainstem.spark.source.stream_reader import StreamReader
from tests.support.group_views import until

Headers = list[tuple[str, str | bytes | None]]


class Topics:
    """Makes and fills topics of one cluster."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.admin = AdminClient({"bootstrap.servers": servers})

    def create(self, partitions: int = 1, name: str | None = None, **config: str) -> str:
        name = name or f"t-{uuid.uuid4().hex[:12]}"
        # The timestamps that tests give are older than any retention.
        settings = {"retention.ms": "-1", **{key.replace("_", "."): value for key, value in config.items()}}
        self.admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result()
        return name

    def delete(self, name: str) -> None:
        """Return when the brokers show it no more, which Apache Kafka does a moment after its answer."""
        self.admin.delete_topics([name])[name].result()
        until(lambda: name not in self.admin.list_topics(timeout=10).topics, f"{name} to be gone")

    def grow(self, name: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(name, partitions)])[name].result()

    def truncate(self, name: str, partition: int, offset: int) -> None:
        at = TopicPartition(name, partition, offset)
        next(iter(self.admin.delete_records([at]).values())).result()

    def send(
        self,
        name: str,
        values: Iterable[object],
        *,
        partition: int = 0,
        timestamp: int = 0,
    ) -> None:
        """One record for each value; its text is the value. Timestamps count up from `timestamp`."""
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5})
        for number, value in enumerate(values):
            producer.produce(
                name, str(value), partition=partition, timestamp=timestamp + number if timestamp else 0
            )
        assert producer.flush(30) == 0

    def send_varied(self, name: str, codec: str, partition: int = 0) -> None:
        """Nulls, empties, headers of all kinds, own timestamps, some size."""
        producer = Producer({"bootstrap.servers": self.servers, "compression.type": codec, "linger.ms": 50})
        headers: list[Headers | None] = [
            None,
            [],
            [("a", b"1"), ("a", b"2"), ("empty", b""), ("null", None)],
            [("größe", "naïve".encode())],
        ]
        for number in range(200):
            producer.produce(
                name,
                key=[None, b"", b"key-%d" % number][number % 3],
                value=[b"value-%d" % number * (number % 40), None, b""][number % 5 % 3],
                headers=headers[number % 4],
                partition=partition,
                timestamp=1_700_000_000_000 + number * 37,
            )
        assert producer.flush(30) == 0

    def send_transactions(self, name: str, outcomes: Iterable[bool], records: int = 5) -> None:
        """A transaction for each outcome: true commits, false aborts."""
        producer = Producer({"bootstrap.servers": self.servers, "transactional.id": f"x-{uuid.uuid4().hex}"})
        producer.init_transactions(30)
        for transaction, commits in enumerate(outcomes):
            producer.begin_transaction()
            for number in range(records):
                producer.produce(name, f"{transaction}-{number}-{commits}")
            producer.flush(30)
            (producer.commit_transaction if commits else producer.abort_transaction)(30)


def source(servers: str, **options: object) -> MainstemDataSource:
    """As Spark makes it of options."""
    given = {name: str(value) for name, value in options.items()}
    return MainstemDataSource({"kafka.bootstrap.servers": servers, **given})


def read_batch(servers: str, **options: object) -> pa.Table:
    """All rows of a batch read; what Spark sends between processes is pickled here too."""
    made = pickle.loads(pickle.dumps(source(servers, **options)))
    reader = made.reader(made.schema())
    worker = pickle.loads(pickle.dumps(reader))
    partitions = pickle.loads(pickle.dumps(list(reader.partitions())))
    return table([batch for partition in partitions for batch in worker.read(partition)])


def table(batches: list[pa.RecordBatch]) -> pa.Table:
    """In the order of topic, partition and offset."""
    if not batches:
        return pa.table({"topic": [], "partition": [], "offset": [], "value": []})
    found = pa.Table.from_batches(batches)
    return found.sort_by([("topic", "ascending"), ("partition", "ascending"), ("offset", "ascending")])


def values(rows: pa.Table) -> list[str]:
    return [value.decode() for value in rows["value"].to_pylist()]


def stream_reader(servers: str, **options: object) -> StreamReader:
    made = source(servers, **options)
    reader = made.streamReader(made.schema())
    assert isinstance(reader, StreamReader)
    return reader


def read_between(reader: StreamReader, start: dict, end: dict) -> pa.Table:
    """The rows of a micro-batch."""
    worker = pickle.loads(pickle.dumps(reader.__class__(reader._options)))
    return table([batch for partition in reader.partitions(start, end) for batch in worker.read(partition)])


def read_by_librdkafka(topics: Topics, name: str, partitions: int, count: int) -> list[dict[str, Any]]:
    """The same rows as plain values, made by another client; sorted by partition and offset."""
    consumer = Consumer({"bootstrap.servers": topics.servers, "group.id": "unused"})
    consumer.assign([TopicPartition(name, number, OFFSET_BEGINNING) for number in range(partitions)])
    found: list[Message] = []
    while len(found) < count:
        found += consumer.consume(count - len(found), 1.0)
    consumer.close()
    found.sort(key=lambda message: (message.partition(), message.offset()))
    return [
        {
            "key": message.key(),
            "value": message.value(),
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "timestamp_ms": message.timestamp()[1],
            "headers": [{"key": header[0], "value": header[1]} for header in message.headers() or ()] or None,
        }
        for message in found
    ]
