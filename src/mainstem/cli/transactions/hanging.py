"""`mainstem transactions find-hanging`: transactions open in a partition that no coordinator will ever end.

A transaction hangs when a partition holds it open while its coordinator does not count the partition as part
of a transaction. Readers of committed records get nothing that comes after it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from mainstem.cli.clusters.existing import no_such_topic
from mainstem.cli.clusters.target import Target, takes_target
from mainstem.cli.command_name import typeable
from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import examples, print_json, print_table
from mainstem.cli.output.units import duration_text
from mainstem.cli.streams import say
from mainstem.cli.transactions import requests
from mainstem.cli.transactions.options import check_broker, existing_partition
from mainstem.cli.transactions.requests import ProducerFacts, TransactionFacts
from mainstem.cli.typed.options import Json
from mainstem.cli.typed.times import iso_time
from mainstem.protocol.resources import TopicPartition
from mainstem.wire import Cluster

EXAMPLES = examples(
    "mainstem transactions find-hanging",
    "mainstem transactions find-hanging --topic orders --partition 0 --max-transaction-timeout 5",
    "mainstem transactions find-hanging --json",
)
_MINUTE_MS = 60_000
_COLUMNS = (
    "topic",
    "partition",
    "producer",
    "epoch",
    "coordinator epoch",
    "start offset",
    "last written",
    "idle for",
)

TopicFilter = Annotated[
    str | None, typer.Option("--topic", "-t", metavar="TOPIC", help="Look in this topic; in all otherwise.")
]
PartitionFilter = Annotated[
    int | None,
    typer.Option("--partition", "-p", metavar="N", min=0, help="Look in this partition of the topic."),
]
BrokerFilter = Annotated[
    int | None, typer.Option("--broker-id", metavar="ID", help="Look in the replicas of this broker.")
]
TimeoutMinutes = Annotated[
    int,
    typer.Option(
        "--max-transaction-timeout",
        metavar="MINUTES",
        min=0,
        help="The longest that a transaction may take; a younger one is not looked at.",
    ),
]


@takes_target
def find_hanging(
    target: Target,
    topic: TopicFilter = None,
    partition: PartitionFilter = None,
    broker_id: BrokerFilter = None,
    max_transaction_timeout: TimeoutMinutes = 15,
    as_json: Json = False,
) -> None:
    """Find transactions that nobody will end; readers of committed records wait behind them."""
    if partition is not None and topic is None:
        raise CommandError(f"--partition {partition} of which topic?", "give --topic TOPIC too", 2)
    older_than_ms = int(time.time() * 1000) - max_transaction_timeout * _MINUTE_MS
    with target.connect() as cluster:
        wanted = _partitions(cluster, topic, partition, broker_id)
        found = hanging(cluster, wanted, older_than_ms, broker_id)
    if as_json:
        print_json([_json(facts) for facts in found])
    elif found:
        print_table(_COLUMNS, [_row(facts) for facts in found])
        first = found[0]
        say(
            typeable(
                "abort one with: mainstem transactions abort "
                f"--topic {first.topic} --partition {first.partition} --start-offset {first.start_offset}"
            )
        )
    else:
        say("no hanging transactions")


def hanging(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    older_than_ms: int,
    broker_id: int | None = None,
) -> list[ProducerFacts]:
    """The transactions open in these partitions, last written to before then, that hang."""
    candidates = [
        facts
        for facts in requests.describe_producers(cluster, partitions, broker_id)
        if facts.start_offset is not None and facts.last_timestamp_ms < older_than_ms
    ]
    if not candidates:
        return []
    listed = requests.list_transactions(cluster, producer_ids={facts.producer_id for facts in candidates})
    ids = {item.producer_id: item.transactional_id for item in listed}
    suspects = forgotten(candidates, ids, requests.describe_transactions(cluster, ids.values()))
    if not suspects:
        return []
    # One that was ended while its coordinator was asked is not open any more.
    still = requests.describe_producers(
        cluster, {(facts.topic, facts.partition) for facts in suspects}, broker_id
    )
    still_open = {(facts.topic, facts.partition, facts.producer_id, facts.start_offset) for facts in still}
    return [
        facts
        for facts in suspects
        if (facts.topic, facts.partition, facts.producer_id, facts.start_offset) in still_open
    ]


def forgotten(
    candidates: Iterable[ProducerFacts],
    ids: Mapping[int, str],
    described: Mapping[str, TransactionFacts],
) -> list[ProducerFacts]:
    """Those of which no coordinator knows: it names every partition that it has yet to write a marker to."""
    found: list[ProducerFacts] = []
    for facts in candidates:
        known = described.get(ids.get(facts.producer_id, ""))
        if known is None or (facts.topic, facts.partition) not in known.partitions:
            found.append(facts)
    return found


def _partitions(
    cluster: Cluster, topic: str | None, partition: int | None, broker_id: int | None
) -> list[TopicPartition]:
    check_broker(cluster, broker_id)
    topics = cluster.metadata()
    if topic is not None and topic not in topics:
        raise no_such_topic(topic, topics)
    if topic is not None and partition is not None:
        return [existing_partition(topics, topic, partition)]
    return [
        (name, number)
        for name in (topics if topic is None else [topic])
        for number, part in topics[name].partitions.items()
        if broker_id is None or broker_id in part.replicas
    ]


def _row(facts: ProducerFacts) -> tuple[str | int, ...]:
    idle_s = max(0.0, time.time() - facts.last_timestamp_ms / 1000)
    return (
        facts.topic,
        facts.partition,
        facts.producer_id,
        facts.producer_epoch,
        facts.coordinator_epoch,
        facts.start_offset if facts.start_offset is not None else -1,
        iso_time(facts.last_timestamp_ms),
        duration_text(idle_s),
    )


def _json(facts: ProducerFacts) -> dict[str, Any]:
    return facts._asdict()
