"""`mainstem cluster reassign`: plans moves, starts them, and waits for them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from mainstem.cli.cluster.moves import NoRoomError, drain, even_out
from mainstem.cli.clusters.advice import advise
from mainstem.cli.clusters.existing import existing_topics, no_such_broker
from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import print_table
from mainstem.wire import Cluster

_POLL_S = 0.5
_COLUMNS = ("topic", "partition", "from", "to")


def move(cluster: Cluster, leaving: int | None, topics: Sequence[str], *, dry_run: bool) -> None:
    """Start the moves that empty the broker `leaving`, or without one even out all brokers; print them."""
    # Without a controller nothing can be moved, and what a broker says of who lives may be old.
    cluster.list_reassignments()
    found = existing_topics(cluster, topics) if topics else [*cluster.metadata().values()]
    before = {
        (topic.name, number): list(part.replicas)
        for topic in found
        for number, part in topic.partitions.items()
    }
    known = {broker.node_id: broker for broker in cluster.describe_cluster().brokers}
    racks = {node_id: broker.rack for node_id, broker in known.items() if not broker.is_fenced}
    if leaving is not None and leaving not in known:
        raise no_such_broker(leaving, known)
    try:
        moves = even_out(before, racks) if leaving is None else drain(before, leaving, racks)
    except NoRoomError as error:
        raise CommandError(str(error), "start another broker first") from None
    if not moves:
        print("nothing has to be moved")
        return
    rows = [
        (topic, number, _text(before[topic, number]), _text(ids))
        for (topic, number), ids in sorted(moves.items())
    ]
    print_table(_COLUMNS, rows)
    if not dry_run:
        for refusal in cluster.alter_reassignments(moves).values():
            if refusal is not None:
                raise advise(refusal)


def show_moves(cluster: Cluster) -> None:
    """What is being moved now."""
    moves = cluster.list_reassignments()
    if not moves:
        print("nothing is being moved")
        return
    rows = [
        (topic, number, _text(it.replicas), _text(it.adding), _text(it.removing))
        for (topic, number), it in sorted(moves.items())
    ]
    print_table(("topic", "partition", "replicas", "adding", "removing"), rows)


def await_moves(cluster: Cluster) -> None:
    """Return when nothing is being moved any more."""
    while cluster.list_reassignments():
        time.sleep(_POLL_S)
    print("all is moved")


def _text(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids)) or "-"
