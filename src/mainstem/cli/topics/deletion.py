"""Making sure that a topic is to be deleted: a question on a terminal, and more for one that brokers need."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from mainstem.cli.errors import CommandError
from mainstem.cli.streams import say
from mainstem.wire import TopicMetadata

_COSTS = {
    "__consumer_offsets": "every group forgets what it has committed and starts at auto.offset.reset",
    "__transaction_state": "every transactional id is forgotten, and transactions that are open stay open",
    "__share_group_state": "every share group forgets what it has acknowledged",
}
_OTHER_COST = "the brokers lose what they keep in it"


def confirm_deletion(topics: Sequence[TopicMetadata], *, yes: bool, internal: bool) -> None:
    """Return if they are to be deleted. What brokers need wants its name typed, or `internal`."""
    asks = sys.stdin.isatty()
    for topic in topics:
        if not topic.is_internal:
            continue
        say(f"warning: {topic.name} belongs to the brokers: {_COSTS.get(topic.name, _OTHER_COST)}")
        if internal:
            continue
        if (
            not asks
            or typer.prompt("Type its name to delete it", default="", show_default=False) != topic.name
        ):
            raise CommandError(f"{topic.name} is not deleted", "--internal deletes such a topic unasked")
    ordinary = [topic.name for topic in topics if not topic.is_internal]
    if ordinary and asks and not yes:
        typer.confirm(f"Delete {', '.join(ordinary)} and every message in it?", abort=True)
