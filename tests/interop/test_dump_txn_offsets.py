"""Apache Kafka's tool prints offsets that were committed in transactions, as it prints Kafka's own."""

import re
from typing import NamedTuple

import pytest

from mainstem.broker.coordination.java_hash import java_hash
from tests.support.kafka_peer import kafka_tool
from tests.support.offset_scenario import new_group
from tests.support.target import Target
from tests.support.transaction_scenario import Actor
from tests.support.transcript import Transcript
from tests.support.wire import WireClient

pytestmark = pytest.mark.peer


class Batch(NamedTuple):
    producer_id: int
    epoch: int
    sequence: int
    what: str


def _batches(text: str, producer_id: int) -> list[Batch]:
    """Those of one producer, and what the tool says of their records."""
    found: list[Batch] = []
    for line in text.splitlines():
        header = re.search(
            r"baseSequence: (-?\d+) .*producerId: (-?\d+) producerEpoch: (-?\d+) .*"
            r"isTransactional: (true|false) isControl: (true|false)",
            line,
        )
        if header is not None:
            sequence, of, epoch, transactional, control = header.groups()
            kind = "control" if control == "true" else "data"
            found.append(Batch(int(of), int(epoch), int(sequence), f"{kind} transactional={transactional}:"))
        elif line.startswith("|"):
            marker = re.search(r"endTxnMarker: (\w+)", line)
            offset = re.search(r'"partition":(\d+).*"offset":(\d+)', line)
            what = f" {marker[1]}" if marker else f" {offset[1]} at {offset[2]}" if offset else " something"
            found[-1] = found[-1]._replace(what=found[-1].what + what)
    return [batch for batch in found if batch.producer_id == producer_id]


def test_kafka_prints_offsets_of_transactions(target: Target) -> None:
    topic = target.create_topic(partitions=2)
    with WireClient(target) as client:
        group = new_group(client)
        actor = Actor(client, Transcript(target, "dump"))
        actor.init()
        first = actor.epoch
        actor.commit_offsets(group, {topic: {0: 5, 1: 6}})
        actor.end(5)
        actor.commit_offsets(group, {topic: {1: 7}})
        actor.end(5, committed=False)
        producer_id = actor.producer_id
    number = java_hash(group) % 50
    file = target.log_dir / f"__consumer_offsets-{number}" / f"{0:020}.log"
    text = kafka_tool("DumpLogSegments", "--offsets-decoder", "--files", str(file)).check()
    assert "isvalid: false" not in text
    assert _batches(text, producer_id) == [
        Batch(producer_id, first, 0, "data transactional=true: 0 at 5 1 at 6"),
        Batch(producer_id, first + 1, -1, "control transactional=true: COMMIT"),
        Batch(producer_id, first + 1, 0, "data transactional=true: 1 at 7"),
        Batch(producer_id, first + 2, -1, "control transactional=true: ABORT"),
    ]
