"""`mainstem groups`: list groups, describe them with their members and lag, move or delete their offsets.

The same commands work on any Kafka cluster; both protocols of consumer groups are shown alike.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mainstem.cli.clusters.target import Target, takes_target
from mainstem.cli.command_name import typeable
from mainstem.cli.groups import delete as groups_delete
from mainstem.cli.groups import requests
from mainstem.cli.groups import reset as groups_reset
from mainstem.cli.groups import show as groups_show
from mainstem.cli.groups.description import describe_groups, no_such_group
from mainstem.cli.groups.lag import GroupLag, collect_all
from mainstem.cli.groups.options import MaybeGroupNames
from mainstem.cli.output.rendering import examples, print_json, print_table
from mainstem.cli.streams import say
from mainstem.cli.typed.choices import spelled
from mainstem.cli.typed.options import Json

app = typer.Typer(
    help="List and describe consumer groups, show their lag, reset or delete their offsets.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

STATES = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Stable",
    "Dead",
)
TYPES = ("classic", "consumer")
NO_GROUPS = "no groups yet; `mainstem consume TOPIC --group NAME` makes one"

States = Annotated[
    list[str],
    typer.Option("--state", metavar="STATE", help=f"Only groups in this state: {', '.join(STATES)}."),
]
Types = Annotated[
    list[str], typer.Option("--type", metavar="TYPE", help="Only groups of this type: classic or consumer.")
]


@app.command(
    "list",
    epilog=examples(
        "mainstem groups list",
        "mainstem groups list --state Empty",
        "mainstem groups list --json | jq '.[] | select(.type == \"consumer\").group_id'",
    ),
)
@takes_target
def list_groups(
    target: Target,
    state: States = [],  # noqa: B006 - typer reads the default, nothing changes it
    group_type: Types = [],  # noqa: B006 - typer reads the default, nothing changes it
    as_json: Json = False,
) -> None:
    """List the groups; in a pipe, one name per line."""
    states, types = spelled(state, STATES, "--state"), spelled(group_type, TYPES, "--type")
    with target.connect() as cluster:
        found = requests.list_groups(cluster, states, types)
    if as_json:
        print_json(
            [
                {
                    "group_id": group.group_id,
                    "type": group.group_type.lower(),
                    "state": group.group_state,
                    "protocol_type": group.protocol_type,
                }
                for group in found
            ]
        )
    elif sys.stdout.isatty() and found:
        rows = [(group.group_id, group.group_type.lower(), group.group_state) for group in found]
        print_table(("group", "type", "state"), rows)
    elif found:
        print("\n".join(group.group_id for group in found))
    else:
        say(typeable(NO_GROUPS) if not states and not types else "no such groups")


@app.command(
    "describe",
    epilog=examples("mainstem groups describe billing", "mainstem groups describe --json billing audit"),
)
@takes_target
def describe(target: Target, groups: MaybeGroupNames = None, as_json: Json = False) -> None:
    """Show state, coordinator, and each partition with its committed offset, lag and reader."""
    found = _collected(groups, target, with_times=False)
    if as_json:
        print_json([groups_show.description_json(group) for group in found])
        return
    for group in found:
        groups_show.show_description(group)


@app.command(
    "members",
    epilog=examples("mainstem groups members billing", "mainstem groups members --json billing"),
)
@takes_target
def members(target: Target, groups: MaybeGroupNames = None, as_json: Json = False) -> None:
    """Show the members with their partitions, lag and subscriptions."""
    found = _collected(groups, target, with_times=False)
    if as_json:
        print_json([groups_show.members_json(group) for group in found])
        return
    for group in found:
        if group.group.members:
            groups_show.show_members(group)
        else:
            say(f"{group.group.group_id} has no members (state {group.group.state})")


@app.command(
    "lag",
    epilog=examples(
        "mainstem groups lag billing",
        "mainstem groups lag --json | jq '.[] | {group_id, lag, seconds}'",
    ),
)
@takes_target
def lag(target: Target, groups: MaybeGroupNames = None, as_json: Json = False) -> None:
    """Show how far groups are behind, in records and in the age of the oldest unread record."""
    found = _collected(groups, target, with_times=True)
    if as_json:
        print_json([groups_show.lag_json(group) for group in found])
        return
    for group in found:
        groups_show.show_lag(group)


app.command("reset-offsets", epilog=groups_reset.EXAMPLES)(groups_reset.reset_offsets)
app.command("delete-offsets", epilog=groups_delete.DELETE_OFFSETS_EXAMPLES)(groups_delete.delete_offsets)
app.command("delete", epilog=groups_delete.DELETE_EXAMPLES)(groups_delete.delete)


def _collected(names: list[str] | None, target: Target, *, with_times: bool) -> list[GroupLag]:
    """The groups of these names, or all of them."""
    with target.connect() as cluster:
        existing: list[str] = []
        if not names:
            existing = [group.group_id for group in requests.list_groups(cluster)]
            if not existing:
                say(typeable(NO_GROUPS))
                return []
        facts = describe_groups(cluster, names or existing)
        for name in names or []:
            if name not in facts:
                raise no_such_group(name, (group.group_id for group in requests.list_groups(cluster)))
        return collect_all(cluster, facts.values(), with_times=with_times)
