"""Compares what came out of the pipeline of `mainstem demo` with what was put in, record by record.

It reads as anybody would: the topics with a Kafka client and read_committed, the table with pyarrow.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Message, TopicPartition

from mainstem.cli.clusters.existing import existing_topic
from mainstem.cli.clusters.librdkafka import END_WAIT_MS, consumer_client, explain
from mainstem.cli.clusters.target import Target
from mainstem.cli.demo.stream import Expected
from mainstem.cli.errors import CommandError

PAID_TOPIC = "paid-orders"
DEAD_LETTERS_TOPIC = "shop.dead-letters"
TABLE = "table"
_SILENCE_MAX_S = 30.0


@dataclass
class Output:
    """One place where something had to come out."""

    place: str
    what: str
    expected: int
    found: int
    missing: int
    extra: int

    @property
    def is_right(self) -> bool:
        return not self.missing and not self.extra


@dataclass
class Outcome:
    """All outputs, and why records became dead letters."""

    outputs: list[Output] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def is_right(self) -> bool:
        return all(output.is_right for output in self.outputs)


def check(expected: Expected, bootstrap: str, folder: Path) -> Outcome:
    """Look into every output."""
    outcome = Outcome()
    paid = [int(message.key() or b"0") for message in _messages(bootstrap, PAID_TOPIC)]
    outcome.outputs.append(_compared(f"topic {PAID_TOPIC}", "paid orders", expected.paid, paid))
    rows = table_rows(folder / TABLE)
    settled = [row["order_id"] for row in rows if row["paid_at"] is not None]
    open_ones = [row["order_id"] for row in rows if row["paid_at"] is None]
    outcome.outputs.append(_compared("table", "paid orders", expected.paid, settled))
    unpaid = expected.paid_too_late | expected.unpaid
    outcome.outputs.append(_compared("table", "unpaid or paid too late", unpaid, open_ones))
    dead_letters = list(_messages(bootstrap, DEAD_LETTERS_TOPIC))
    values = [message.value() or b"" for message in dead_letters]
    outcome.outputs.append(_compared(f"topic {DEAD_LETTERS_TOPIC}", "bad records", expected.bad, values))
    outcome.reasons.update(_reason(message) for message in dead_letters)
    return outcome


def _compared(place: str, what: str, expected: Iterable[Any], found: Iterable[Any]) -> Output:
    """Each expected one must be there once, and nothing else."""
    wanted, there = Counter(list(expected)), Counter(list(found))
    return Output(
        place, what, wanted.total(), there.total(), (wanted - there).total(), (there - wanted).total()
    )


def _reason(message: Message) -> str:
    from mainstem.spark.pipeline.dead_letters.headers import STEP

    headers: Any = message.headers() or []
    return next((value.decode() for name, value in headers if name == STEP), "no reason given")


def table_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a table that Spark's streams write: only of the files that its log names."""
    import pyarrow.dataset

    files: set[str] = set()
    for log in (folder / "_spark_metadata").glob("[0-9]*"):
        # The first line is a version; files that were compacted repeat what the others say.
        entries = [json.loads(line) for line in log.read_text().splitlines()[1:]]
        files |= {entry["path"].rpartition("/")[2] for entry in entries}
    if not files:
        return []
    found = pyarrow.dataset.dataset([str(folder / name) for name in sorted(files)], format="parquet")
    rows: list[dict[str, Any]] = found.to_table(columns=["order_id", "paid_at"]).to_pylist()
    return rows


def _messages(bootstrap: str, topic: str) -> Iterator[Message]:
    """All committed messages of a topic, to its end of now."""
    settings = {
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": END_WAIT_MS,
    }
    target = Target({"bootstrap.servers": bootstrap})
    with target.connect() as cluster:
        partitions = set(existing_topic(cluster, topic).partitions)
    consumer = consumer_client(target, settings)
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        while partitions:
            message = consumer.poll(_SILENCE_MAX_S)
            if message is None:
                raise CommandError(f"nothing came from {topic} for {_SILENCE_MAX_S:.0f} s")
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                partitions.discard(message.partition() or 0)
            elif not error.retriable():
                raise explain(error, bootstrap)
    finally:
        consumer.close()
