"""Options and arguments that several `transactions` commands share, named as in Apache Kafka's tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import typer

from mainstem.cli.clusters.existing import no_such_broker, no_such_partition, no_such_topic
from mainstem.cli.errors import CommandError
from mainstem.nearest import suggestion
from mainstem.protocol.resources import TopicPartition
from mainstem.wire import Cluster, TopicMetadata

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


def existing_partition(topics: Mapping[str, TopicMetadata], topic: str, partition: int) -> TopicPartition:
    """The partition, which has to be there."""
    if topic not in topics:
        raise no_such_topic(topic, topics)
    if partition not in topics[topic].partitions:
        raise no_such_partition(topic, partition, len(topics[topic].partitions))
    return topic, partition


def check_broker(cluster: Cluster, broker_id: int | None) -> None:
    """Nothing to say, if there is such a broker or none is named."""
    if broker_id is not None and broker_id not in (known := cluster.brokers()):
        raise no_such_broker(broker_id, known)


def no_such_id(transactional_id: str, existing: Iterable[str]) -> CommandError:
    """There is no such transactional id: offer the likely typo."""
    hint = suggestion(transactional_id, existing, "`mainstem transactions list` shows what is there")
    return CommandError(f"there is no transactional id {transactional_id!r}", hint)
