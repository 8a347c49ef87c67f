"""`mainstem groups delete` and `delete-offsets`: a line for each item, and a failure if one failed."""

from __future__ import annotations

import sys

import typer

from mainstem.cli.clusters.advice import advise
from mainstem.cli.clusters.target import Target, takes_target
from mainstem.cli.errors import CommandError
from mainstem.cli.groups.offsets import committed_offsets
from mainstem.cli.groups.options import GroupName, GroupNames
from mainstem.cli.groups.requests import delete_groups
from mainstem.cli.groups.requests import delete_offsets as delete_committed
from mainstem.cli.groups.scope import AllTopics, Topics, check_scope, existing_partitions, parse_topics
from mainstem.cli.output.rendering import examples
from mainstem.cli.streams import say
from mainstem.cli.typed.options import Yes
from mainstem.protocol.resources import TopicPartition
from mainstem.wire import Cluster
from mainstem.wire.errors import name_of

DELETE_EXAMPLES = examples(
    "mainstem groups delete billing", "mainstem groups delete old-1 old-2 --yes  [dim]# does not ask[/dim]"
)
DELETE_OFFSETS_EXAMPLES = examples(
    "mainstem groups delete-offsets billing --topic orders",
    "mainstem groups delete-offsets billing --topic orders:0,2 --topic audit",
)


@takes_target
def delete(target: Target, groups: GroupNames, yes: Yes = False) -> None:
    """Delete groups with all of their offsets; only groups without members can be deleted."""
    names = list(dict.fromkeys(groups))
    failed: list[CommandError] = []
    with target.connect() as cluster:
        if sys.stdin.isatty() and not yes:
            typer.confirm(f"Delete {', '.join(names)} and all committed offsets?", abort=True)
        answers = delete_groups(cluster, names)
    for name, refusal in sorted(answers.items(), key=lambda item: names.index(item[0])):
        if refusal is None:
            print(f"deleted {name}", flush=True)
        else:
            failed.append(advise(refusal))
            say(f"not deleted: {failed[-1].message}")
    if failed:
        raise CommandError(f"{len(failed)} of {len(names)} groups are not deleted", failed[0].hint)


@takes_target
def delete_offsets(
    target: Target,
    group: GroupName,
    topics: Topics = [],  # noqa: B006 - typer reads the default, nothing changes it
    all_topics: AllTopics = False,
    yes: Yes = False,
) -> None:
    """Delete committed offsets of topics that no member of the group reads."""
    check_scope(topics, all_topics)
    wanted = parse_topics(topics)
    failed: list[CommandError] = []
    with target.connect() as cluster:
        committed = committed_offsets(cluster, group)
        partitions = list(committed) if all_topics else _chosen(cluster, wanted, committed)
        if not partitions:
            raise CommandError(
                f"group {group} has no committed offsets", "`mainstem groups list` shows the groups"
            )
        if sys.stdin.isatty() and not yes:
            typer.confirm(f"Delete {len(partitions)} committed offsets of {group}?", abort=True)
        answers = delete_committed(cluster, group, partitions)
    for partition in partitions:
        refusal = answers.get(partition)
        if refusal is not None:
            failed.append(advise(refusal))
            say(f"not deleted: {failed[-1].message}")
        else:
            what = "deleted" if partition in committed else "nothing was committed for"
            print(f"{what} {name_of(partition)}", flush=True)
    if failed:
        raise CommandError(f"{len(failed)} of {len(partitions)} offsets are not deleted", failed[0].hint)


def _chosen(
    cluster: Cluster, wanted: dict[str, list[int] | None], committed: dict[TopicPartition, int]
) -> list[TopicPartition]:
    """Of a topic as a whole, the partitions with an offset; all of them where none has one."""
    counts = {name: len(topic.partitions) for name, topic in cluster.metadata().items()}
    # Offsets outlive a deleted topic, and can still be named.
    for topic, number in committed:
        counts[topic] = max(counts.get(topic, 0), number + 1)
    partitions = existing_partitions(wanted, counts)
    return [part for part in partitions if wanted[part[0]] is not None or part in committed] or partitions
