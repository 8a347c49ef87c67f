"""`mainstem transactions`: list and describe transactions, find hanging ones, abort them, fence producers.

The same commands work on any Kafka cluster that serves these requests.
"""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

import typer

from mainstem.cli.clusters.target import Target, takes_target
from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import examples, partitions_text, print_json, print_table
from mainstem.cli.output.units import duration_text
from mainstem.cli.streams import say
from mainstem.cli.transactions import end as transactions_end
from mainstem.cli.transactions import hanging as transactions_hanging
from mainstem.cli.transactions import requests
from mainstem.cli.transactions.options import (
    BrokerId,
    MaybeIds,
    Partition,
    Topic,
    check_broker,
    existing_partition,
    no_such_id,
)
from mainstem.cli.transactions.requests import ProducerFacts, TransactionFacts
from mainstem.cli.typed.choices import spelled
from mainstem.cli.typed.numbers import INT64_MAX
from mainstem.cli.typed.options import Json
from mainstem.cli.typed.times import iso_time
from mainstem.durations import duration_ms
from mainstem.wire import Cluster

app = typer.Typer(
    help="List and describe transactions, find and abort hanging ones, fence producers.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
    "Dead",
)
NONE = "-"
NO_IDS = "no transactional ids yet: a producer with `transactional.id` makes one"

States = Annotated[
    list[str],
    typer.Option("--state", metavar="STATE", help=f"Only those in this state: {', '.join(STATES)}."),
]
ProducerIds = Annotated[
    list[int],
    typer.Option(
        "--producer-id", metavar="ID", max=INT64_MAX, help="Only that of this producer. May be repeated."
    ),
]
Duration = Annotated[
    str | None,
    typer.Option(
        "--duration-filter", metavar="TIME", help="Only transactions open for longer: 10m, or milliseconds."
    ),
]
TransactionalIds = Annotated[
    list[str],
    typer.Option("--transactional-id", metavar="ID", help="The same as the argument. May be repeated."),
]
Pattern = Annotated[
    str | None,
    typer.Option(
        "--transactional-id-pattern", metavar="REGEX", help="Only ids that match as a whole, in RE2's syntax."
    ),
]


@app.command(
    "list",
    epilog=examples(
        "mainstem transactions list",
        "mainstem transactions list --state Ongoing --duration-filter 1m",
        "mainstem transactions list --transactional-id-pattern 'billing-.*' --json",
    ),
)
@takes_target
def list_transactions(
    target: Target,
    state: States = [],  # noqa: B006 - typer reads the default, nothing changes it
    producer_id: ProducerIds = [],  # noqa: B006 - typer reads the default, nothing changes it
    duration_filter: Duration = None,
    pattern: Pattern = None,
    as_json: Json = False,
) -> None:
    """List the transactional ids; in a pipe, one per line."""
    states, duration_ms = spelled(state, STATES, "--state"), _duration_ms(duration_filter)
    with target.connect() as cluster:
        found = requests.list_transactions(cluster, states, producer_id, duration_ms, pattern)
    if as_json:
        print_json([item._asdict() for item in found])
    elif sys.stdout.isatty() and found:
        rows = [(item.transactional_id, item.state, item.producer_id, item.coordinator_id) for item in found]
        print_table(("transactional id", "state", "producer", "coordinator"), rows)
    elif found:
        print("\n".join(item.transactional_id for item in found))
    else:
        filtered = states or producer_id or duration_filter is not None or pattern is not None
        say("no such transactional ids" if filtered else NO_IDS)


@app.command(
    "describe",
    epilog=examples(
        "mainstem transactions describe billing-1",
        "mainstem transactions describe --json billing-1 billing-2",
    ),
)
@takes_target
def describe(
    target: Target,
    ids: MaybeIds = None,
    transactional_id: TransactionalIds = [],  # noqa: B006 - typer reads the default, nothing changes it
    as_json: Json = False,
) -> None:
    """Show state, producer, coordinator, and the partitions of a transaction that is not over."""
    names = [*(ids or []), *transactional_id]
    with target.connect() as cluster:
        found = requests.describe_transactions(cluster, names or _all_ids(cluster))
        for name in names:
            if name not in found:
                raise no_such_id(name, _all_ids(cluster))
    now_ms = int(time.time() * 1000)
    if as_json:
        print_json([_facts_json(facts, now_ms) for facts in found.values()])
    elif found:
        print_table(_FACTS_COLUMNS, [_facts_row(facts, now_ms) for facts in found.values()])
    else:
        say(NO_IDS)


@app.command(
    "describe-producers",
    epilog=examples("mainstem transactions describe-producers --topic orders --partition 0"),
)
@takes_target
def describe_producers(
    target: Target,
    topic: Topic,
    partition: Partition,
    broker_id: BrokerId = None,
    as_json: Json = False,
) -> None:
    """Show the producers that a partition remembers, with their open transactions."""
    with target.connect() as cluster:
        check_broker(cluster, broker_id)
        wanted = existing_partition(cluster.metadata(), topic, partition)
        found = requests.describe_producers(cluster, [wanted], broker_id)
    if as_json:
        print_json([facts._asdict() for facts in found])
    elif found:
        print_table(_PRODUCER_COLUMNS, [_producer_row(facts) for facts in found])
    else:
        say(f"{topic}-{partition} remembers no producer")


app.command("find-hanging", epilog=transactions_hanging.EXAMPLES)(transactions_hanging.find_hanging)
app.command("abort", epilog=transactions_end.ABORT_EXAMPLES)(transactions_end.abort)
app.command("fence", epilog=transactions_end.FENCE_EXAMPLES)(transactions_end.fence)

_FACTS_COLUMNS = (
    "transactional id",
    "state",
    "producer",
    "epoch",
    "open for",
    "timeout",
    "coordinator",
    "partitions",
)
_PRODUCER_COLUMNS = ("producer", "epoch", "coordinator epoch", "last sequence", "last written", "open from")


def _all_ids(cluster: Cluster) -> list[str]:
    return [item.transactional_id for item in requests.list_transactions(cluster)]


def _duration_ms(text: str | None) -> int:
    """A length of time, or milliseconds as Apache Kafka's tool takes them; -1 for none."""
    if text is None:
        return -1
    found = int(text) if text.removeprefix("-").isdecimal() else duration_ms(text)
    if found is None:
        raise CommandError(f"{text!r} is not a length of time", "write 10m, 2h30m or milliseconds", 2)
    return min(max(found, -1), INT64_MAX)


def _facts_json(facts: TransactionFacts, now_ms: int) -> dict[str, Any]:
    partitions = [{"topic": topic, "partition": number} for topic, number in facts.partitions]
    duration_ms = None if facts.start_time_ms is None else now_ms - facts.start_time_ms
    return facts._asdict() | {"duration_ms": duration_ms, "partitions": partitions}


def _facts_row(facts: TransactionFacts, now_ms: int) -> tuple[str | int, ...]:
    open_s = None if facts.start_time_ms is None else max(0, now_ms - facts.start_time_ms) / 1000
    return (
        facts.transactional_id,
        facts.state,
        facts.producer_id,
        facts.producer_epoch,
        duration_text(open_s),
        duration_text(facts.timeout_ms / 1000),
        f"{facts.coordinator} ({facts.coordinator_id})",
        partitions_text(facts.partitions),
    )


def _producer_row(facts: ProducerFacts) -> tuple[str | int, ...]:
    return (
        facts.producer_id,
        facts.producer_epoch,
        facts.coordinator_epoch,
        facts.last_sequence,
        iso_time(facts.last_timestamp_ms) if facts.last_timestamp_ms >= 0 else NONE,
        NONE if facts.start_offset is None else facts.start_offset,
    )
