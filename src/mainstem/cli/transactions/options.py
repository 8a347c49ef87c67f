"""Options and arguments that several `transactions` commands share, named as in Apache Kafka's tool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer
from confluent_kafka.admin import ClusterMetadata

from mainstem.cli.client import no_such_topic
from mainstem.cli.errors import CommandError
from mainstem.cli.transactions.requests import partitions_of
from mainstem.nearest import suggestion
from mainstem.protocol.resources import TopicPartition

Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="One or more transactional ids.")]
MaybeIds = Annotated[
    list[str] | None, typer.Argument(metavar="[ID...]", help="Which transactional ids; all by default.")
]
Topic = Annotated[str, typer.Option("--topic", "-t", metavar="TOPIC", help="The partition's topic.")]
Partition = Annotated[int, typer.Option("--partition", "-p", metavar="N", min=0, help="Its number.")]
BrokerId = Annotated[
    int | None,
    typer.Option("--broker-id", metavar="ID", help="Ask this broker; the partition's leader otherwise."),
]


def existing_partition(cluster: ClusterMetadata, topic: str, partition: int) -> TopicPartition:
    """The partition, which has to be there."""
    if topic not in cluster.topics:
        raise no_such_topic(topic, list(cluster.topics))
    count = len(partitions_of(cluster, topic))
    if partition >= count:
        raise CommandError(f"{topic} has no partition {partition}", f"it has 0 to {count - 1}")
    return topic, partition


def existing_broker(cluster: ClusterMetadata, broker_id: int | None) -> None:
    """Nothing to say, if there is such a broker or none is named."""
    if broker_id is not None and broker_id not in cluster.brokers:
        known = ", ".join(str(node_id) for node_id in sorted(cluster.brokers))
        raise CommandError(f"there is no broker {broker_id}", f"there is {known}")


def no_such_id(transactional_id: str, existing: Iterable[str]) -> CommandError:
    """There is no such transactional id: offer the likely typo."""
    hint = suggestion(transactional_id, existing, "`mainstem transactions list` shows what is there")
    return CommandError(f"there is no transactional id {transactional_id!r}", hint)
