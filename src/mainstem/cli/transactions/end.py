"""`mainstem transactions abort` and `fence`: end a transaction in place of its coordinator or producer."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mainstem.cli.clusters.advice import advise
from mainstem.cli.clusters.target import Target, takes_target
from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import examples
from mainstem.cli.streams import say
from mainstem.cli.transactions import requests
from mainstem.cli.transactions.hanging import forgotten
from mainstem.cli.transactions.options import Ids, Partition, Topic, existing_partition, no_such_id
from mainstem.cli.transactions.requests import Marker, ProducerFacts, TransactionFacts
from mainstem.cli.typed.numbers import INT16_MAX, INT32_MAX, INT64_MAX
from mainstem.cli.typed.options import Yes
from mainstem.protocol.resources import TopicPartition
from mainstem.wire import Cluster, KafkaRefusal

ABORT_EXAMPLES = examples(
    "mainstem transactions abort --topic orders --partition 0 --start-offset 42",
    "mainstem transactions abort --topic orders --partition 0 --producer-id 7 --producer-epoch 3 "
    "--coordinator-epoch 0",
)
FENCE_EXAMPLES = examples(
    "mainstem transactions fence billing-1",
    "mainstem transactions fence billing-1 billing-2 --yes  [dim]# does not ask[/dim]",
)

StartOffset = Annotated[
    int | None,
    typer.Option("--start-offset", metavar="OFFSET", min=0, help="Where the hanging transaction begins."),
]
ProducerId = Annotated[
    int | None,
    typer.Option(
        "--producer-id", metavar="ID", min=0, max=INT64_MAX, help="In place of the offset, with both epochs."
    ),
]
ProducerEpoch = Annotated[
    int | None,
    typer.Option("--producer-epoch", metavar="N", min=0, max=INT16_MAX, help="The producer's epoch."),
]
CoordinatorEpoch = Annotated[
    int | None,
    typer.Option("--coordinator-epoch", metavar="N", min=-1, max=INT32_MAX, help="The coordinator's epoch."),
]


@takes_target
def abort(
    target: Target,
    topic: Topic,
    partition: Partition,
    start_offset: StartOffset = None,
    producer_id: ProducerId = None,
    producer_epoch: ProducerEpoch = None,
    coordinator_epoch: CoordinatorEpoch = None,
    yes: Yes = False,
) -> None:
    """Abort a hanging transaction in one partition; find-hanging shows which there are."""
    spelt_out = (producer_id, producer_epoch, coordinator_epoch)
    _check_choice(start_offset, spelt_out)
    with target.connect() as cluster:
        where = existing_partition(cluster.metadata(), topic, partition)
        if start_offset is not None:
            marker = _hanging_at(cluster, where, start_offset)
        else:
            marker = Marker(topic, partition, *(number for number in spelt_out if number is not None))
        if sys.stdin.isatty() and not yes:
            typer.confirm(
                f"Abort the transaction of producer {marker.producer_id} in {topic}-{partition}?", abort=True
            )
        requests.abort_transaction(cluster, marker)
    print(f"aborted the transaction of producer {marker.producer_id} in {topic}-{partition}")


def _check_choice(start_offset: int | None, spelt_out: tuple[int | None, ...]) -> None:
    """One of the two ways to say which transaction."""
    given = [value is not None for value in spelt_out]
    if (start_offset is None) == (not any(given)) or (any(given) and not all(given)):
        raise CommandError(
            "which transaction?" if start_offset is None else "--start-offset names the transaction already",
            "give --start-offset, or --producer-id with --producer-epoch and --coordinator-epoch",
            2,
        )


def _hanging_at(cluster: Cluster, where: TopicPartition, start_offset: int) -> Marker:
    """The transaction that is open from there, if nobody else will end it."""
    topic, partition = where
    producers = requests.describe_producers(cluster, [where])
    opened = [facts for facts in producers if facts.start_offset is not None]
    found = [facts for facts in opened if facts.start_offset == start_offset]
    if not found:
        begins = ", ".join(str(facts.start_offset) for facts in opened)
        raise CommandError(
            f"no transaction in {topic}-{partition} is open from offset {start_offset}",
            f"those that are open begin at {begins}" if opened else "no transaction is open there",
        )
    _refuse_what_is_known(cluster, found[0])
    return Marker(*where, found[0].producer_id, found[0].producer_epoch, found[0].coordinator_epoch)


def _refuse_what_is_known(cluster: Cluster, facts: ProducerFacts) -> None:
    """A coordinator that knows of the transaction would still commit the other partitions of it."""
    listed = requests.list_transactions(cluster, producer_ids=[facts.producer_id])
    ids = {item.producer_id: item.transactional_id for item in listed}
    if not forgotten([facts], ids, requests.describe_transactions(cluster, ids.values())):
        name = ids[facts.producer_id]
        raise CommandError(
            f"the transaction of {name} is not hanging: its coordinator will end it in all of its partitions",
            f"`mainstem transactions fence {name}` makes it abort the transaction now",
        )


@takes_target
def fence(target: Target, ids: Ids, yes: Yes = False) -> None:
    """Shut out the producers that use these ids, and abort what they have open."""
    names = list(dict.fromkeys(ids))
    failed: list[CommandError] = []
    with target.connect() as cluster:
        known = requests.describe_transactions(cluster, names)
        if sys.stdin.isatty() and not yes:
            typer.confirm(f"Fence {', '.join(names)}? A producer in use will fail.", abort=True)
        for name in names:
            try:
                _fence_one(cluster, name, known.get(name))
            except (CommandError, KafkaRefusal) as error:
                failed.append(error if isinstance(error, CommandError) else advise(error))
                say(f"not fenced: {failed[-1].message}")
    if failed:
        raise CommandError(f"{len(failed)} of {len(names)} ids are not fenced", failed[0].hint)


def _fence_one(cluster: Cluster, name: str, known: TransactionFacts | None) -> None:
    if known is None:
        raise no_such_id(name, (item.transactional_id for item in requests.list_transactions(cluster)))
    producer_id, epoch = requests.fence_producer(cluster, known)
    print(f"fenced {name}: producer {producer_id} goes on with epoch {epoch}", flush=True)
