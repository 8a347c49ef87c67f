"""Transactions for the tests of `mainstem transactions`: open ones of librdkafka, and hanging ones."""

from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from mainstem.records.batch import TRANSACTIONAL_MASK
from tests.support.scenario import batch, new_producer_id, produce_request
from tests.support.target import Target, when_settled
from tests.support.wire import WireClient

_TIMEOUT_S = 60
LONG_AGO_MS = 1_000_000_000_000  # 2001: older than any time-out
# Without it a broker does not take a record of a transaction that the coordinator does not know.
LETS_HANG = {"transaction.partition.verification.enable": "false"}


def producer(bootstrap: str, transactional_id: str) -> Producer:
    """A producer that has its id from the coordinator, and no transaction yet."""
    made = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 300_000,
        }
    )
    # The first of a cluster finds a coordinator before Apache Kafka has loaded it.
    when_settled(lambda: made.init_transactions(_TIMEOUT_S), lambda _: True)
    return made


def write(writer: Producer, topic: str, partitions: Sequence[int] = (0,)) -> None:
    """Begin a transaction and write a record to each of these partitions."""
    writer.begin_transaction()
    for partition in partitions:
        writer.produce(topic, b"record", partition=partition, timestamp=LONG_AGO_MS)
    assert writer.flush(_TIMEOUT_S) == 0


def open_transaction(
    bootstrap: str, transactional_id: str, topic: str, partitions: Sequence[int] = (0,)
) -> Producer:
    """A transaction that has written and is neither committed nor aborted."""
    writer = producer(bootstrap, transactional_id)
    write(writer, topic, partitions)
    return writer


def leave_hanging(bootstrap: str, topic: str, partition: int = 0, timestamp_ms: int = LONG_AGO_MS) -> int:
    """A record of a transaction that no coordinator knows of; the producer id of it."""
    with WireClient(Target("", bootstrap, Path())) as client:
        producer_id = new_producer_id(client)
        records = batch(
            1,
            timestamp_ms=timestamp_ms,
            attributes=TRANSACTIONAL_MASK,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
        )
        request = produce_request(topic, records, partition=partition, transactional_id="unknown")
        answer = client.call(request, 11)
    assert answer.responses[0].partition_responses[0].error_code == 0, answer
    return producer_id


def committed_end(bootstrap: str, topic: str, partition: int = 0) -> int:
    """The offset up to which a reader of committed records gets."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "ends", "isolation.level": "read_committed"}
    )
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_TIMEOUT_S)
    consumer.close()
    return end
