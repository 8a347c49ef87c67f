"""Transactions on disk: Apache Kafka's own tool reads Mainstem's markers and indexes of aborted transactions,
and Mainstem serves what Apache Kafka wrote, with the indexes or without them.
"""

import re
import shutil
from pathlib import Path

import pytest
from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec

from mainstem.testing import Broker
from tests.storage.log_helpers import NOW_MS, append, files, open_log
from tests.storage.transaction_helpers import append_in_transaction, end
from tests.support.clients import Message, read_confluent, write_confluent
from tests.support.kafka_peer import kafka_tool
from tests.support.target import Target

pytestmark = pytest.mark.peer

_TIMEOUT_SECONDS = 30
_SEGMENT_CONFIGS = {"segment.bytes": "1048576"}


def test_dump_log_segments_prints_markers_and_aborted_transactions(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append_in_transaction(log, 11)
    append_in_transaction(log, 12)
    end(log, 11, commit=False)
    log.roll(NOW_MS)
    append(log)
    append_in_transaction(log, 11)
    end(log, 12, commit=False)
    end(log, 11, commit=True)
    log.close()

    def dump(suffix: str) -> str:
        names = ",".join(str(path) for path in files(log, suffix))
        return kafka_tool("DumpLogSegments", "--files", names, "--print-data-log").check()

    dumped = dump(".log")
    markers = re.findall(
        r"producerId: (\d+) producerEpoch: (\d+) .*isTransactional: true isControl: true.*\n"
        r".*endTxnMarker: (\w+) coordinatorEpoch: (\d+)",
        dumped,
    )
    assert markers == [("11", "1", "ABORT", "0"), ("12", "1", "ABORT", "0"), ("11", "2", "COMMIT", "0")]
    assert "isvalid: false" not in dumped
    entries = re.findall(
        r"version: 0 producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)",
        dump(".txnindex"),
    )
    assert entries == [("11", "0", "2", "1"), ("12", "1", "5", "4")]
    snapshots = dump(".snapshot")
    assert re.search(r"producerId: 12 producerEpoch: 0 .*currentTxnFirstOffset: OptionalLong\[1\]", snapshots)


def _producer(target: Target, name: str) -> Producer:
    settings = {"bootstrap.servers": target.bootstrap_servers, "transactional.id": name}
    producer = Producer({**settings, "transaction.timeout.ms": 600_000})
    producer.init_transactions(_TIMEOUT_SECONDS)
    return producer


def _send(producer: Producer, topic: str, value: bytes) -> None:
    producer.produce(topic, value, partition=0)
    assert producer.flush(_TIMEOUT_SECONDS) == 0


def _write_transactions(target: Target, topic: str) -> list[bytes]:
    """Two producers whose transactions interleave over several segments; one stays open. Returns the values
    that are committed before that.
    """
    first, second = _producer(target, f"{topic}-1"), _producer(target, f"{topic}-2")
    committed: list[bytes] = []
    for number in range(12):
        values = {producer: b"%d of %d " % (number, id(producer)) * 4000 for producer in (first, second)}
        if number % 3 == 0:
            second.begin_transaction()
        first.begin_transaction()
        for producer, value in values.items():
            _send(producer, topic, value)
        if number % 2:
            first.commit_transaction(_TIMEOUT_SECONDS)
        else:
            first.abort_transaction(_TIMEOUT_SECONDS)
        # The second producer's transactions hold three rounds; every other one is aborted.
        if number % 3 == 2:
            if number % 2:
                second.commit_transaction(_TIMEOUT_SECONDS)
            else:
                second.abort_transaction(_TIMEOUT_SECONDS)
        for producer, value in values.items():
            kept = number % 2 if producer is first else (number // 3 * 3 + 2) % 2
            if kept:
                committed.append(value)
    first.begin_transaction()
    _send(first, topic, b"left open")
    return committed


@pytest.mark.parametrize("only_logs", [False, True], ids=["all files", "logs only"])
def test_mainstem_serves_the_transactions_that_kafka_wrote(
    kafka: Target, tmp_path: Path, only_logs: bool
) -> None:
    source = kafka.create_topic(configs=_SEGMENT_CONFIGS)
    committed = _write_transactions(kafka, source)
    (plain,) = write_confluent(kafka, source, [Message(b"behind the open one")])
    assert [message.value for message in read_confluent(kafka, source, len(committed))] == committed
    kafkas = kafka.log_dir / f"{source}-0"
    indexes = {path.name: path.read_bytes() for path in kafkas.glob("*.txnindex") if path.stat().st_size}
    assert len(indexes) > 1, "aborts in several segments"
    with Broker(data_dir=tmp_path / "data") as broker:
        target = Target("mainstem", broker.bootstrap_servers, broker.data_dir)
        topic = target.create_topic(source, configs=_SEGMENT_CONFIGS)
        broker.stop()
        folder = broker.data_dir / f"{topic}-0"
        for path in folder.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        for path in kafkas.iterdir():
            if path.suffix == ".log" or (not only_logs and path.name != "partition.metadata"):
                shutil.copy(path, folder)
        broker.start()
        read = read_confluent(target, topic, len(committed))
        assert [message.value for message in read] == committed
        middle = read[len(read) // 2].offset
        again = read_confluent(target, topic, len(read) - len(read) // 2, offset=middle)
        assert [message.value for message in again] == committed[len(read) // 2 :]
        assert {path.name: path.read_bytes() for path in folder.glob("*.txnindex")} == indexes
        admin, wanted = target.admin(), {TopicPartition(topic, 0): OffsetSpec.latest()}
        (stable,) = admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED).values()
        assert stable.result(_TIMEOUT_SECONDS).offset == plain.offset - 1
