"""What tests of the sink share: rows, staged rows, and all that a topic holds, read by librdkafka."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from mainstem.spark.sink import writer
from mainstem.spark.sink.columns import check_columns
from mainstem.spark.sink.options import SinkOptions, parse
from mainstem.spark.sink.staging import Staged
from mainstem.spark.sink.writers import StagedMessage, TransactionalWriter
from mainstem.testing import Broker
from tests.support.clients import Message
from tests.support.target import stable_ends

KEYED = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
FULL = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("key", BinaryType()),
        StructField("value", StringType()),
        StructField("headers", ArrayType(HEADER)),
    ]
)
ARROW_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
READ_TIMEOUT_S = 30
Headers = tuple[tuple[str, bytes | None], ...]


def rows(values: Sequence[bytes], keys: Sequence[str | None] | None = None) -> pa.RecordBatch:
    """An Arrow batch with the columns key and value."""
    return pa.record_batch(
        {"key": pa.array(keys or [None] * len(values), pa.string()), "value": pa.array(values, pa.binary())}
    )


def rows_with_crashes(broker: Broker, sent: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """These rows, with a broker that dies and comes back two times in between."""
    for number, batch in enumerate(sent):
        if number in (len(sent) // 3, 2 * len(sent) // 3):
            broker.kill()
            broker.start()
        yield batch


def options_for(bootstrap_servers: str, topic: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap_servers, "topic": topic, **more}


def transactional(bootstrap_servers: str, topic: str, folder: Path, **more: str) -> SinkOptions:
    """The options of an exactly-once write."""
    given = options_for(
        bootstrap_servers, topic, exactlyOnce="true", stagingLocation=str(folder / "staging"), **more
    )
    return parse(given, streaming=True)


def stage(options: SinkOptions, query_id: str, batch_id: int, values: Sequence[bytes]) -> Staged:
    """Rows staged as a task of a batch write would do it."""
    named = replace(options, application_id=query_id, application_version=batch_id)
    task = TransactionalWriter(named, check_columns(KEYED, options.topic))
    message = task.write(iter([rows(values)]))
    assert isinstance(message, StagedMessage)
    return message.staged


def write(bootstrap_servers: str, topic: str, *batches: pa.RecordBatch, **more: str) -> None:
    """Rows through an at-least-once writer, as one task."""
    writer(KEYED, options_for(bootstrap_servers, topic, **more), False).write(iter(batches))


def read_topic(
    bootstrap_servers: str, topic: str, isolation: str = "read_committed"
) -> dict[int, list[Message]]:
    """Everything that a reader sees, by partition, in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    try:
        numbers = consumer.list_topics(topic, timeout=READ_TIMEOUT_S).topics[topic].partitions
        found: dict[int, list[Message]] = {number: [] for number in numbers}
        consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
        at_end: set[int] = set()
        while len(at_end) < len(found):
            message = consumer.poll(READ_TIMEOUT_S)
            assert message is not None, f"{topic} cannot be read to its end: {at_end} of {set(found)}"
            if message.error() is not None:
                at_end.add(message.partition() or 0)
                continue
            found[message.partition() or 0].append(
                Message(
                    message.value(),
                    message.key(),
                    cast("Headers", tuple(message.headers() or ())),
                    message.timestamp()[1],
                    message.offset() or 0,
                )
            )
        return found
    finally:
        consumer.close()


def await_markers(bootstrap_servers: str, topic: str) -> None:
    """Returns when readers see all that is committed."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    numbers = admin.list_topics(topic, timeout=READ_TIMEOUT_S).topics[topic].partitions
    stable_ends(admin, [TopicPartition(topic, number) for number in numbers])


def read_values(bootstrap_servers: str, topic: str, isolation: str = "read_committed") -> list[bytes]:
    """The values of all partitions, sorted."""
    found = read_topic(bootstrap_servers, topic, isolation)
    return sorted(message.value or b"" for messages in found.values() for message in messages)


def option_set(settings: Mapping[str, str]) -> dict[str, str]:
    """Options with a broker that need not exist."""
    return {"kafka.bootstrap.servers": "localhost:9092", **settings}
