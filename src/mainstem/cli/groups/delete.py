"""`mainstem groups delete` and `delete-offsets`: a line for each item, and a failure if one failed."""

from __future__ import annotations

import sys

import typer
from confluent_kafka import KafkaError, KafkaException

from mainstem.cli.client import (
    DEFAULT_BOOTSTRAP,
    REQUEST_TIMEOUT_S,
    Bootstrap,
    admin_client,
    advise,
    cluster_metadata,
)
from mainstem.cli.cluster_requests import refusal
from mainstem.cli.errors import CommandError
from mainstem.cli.groups.offsets import committed_offsets
from mainstem.cli.groups.options import GroupName, GroupNames, Yes
from mainstem.cli.groups.requests import GroupRequests
from mainstem.cli.groups.scope import AllTopics, Topics, check_scope, existing_partitions, parse_topics
from mainstem.cli.rendering import examples
from mainstem.cli.streams import say
from mainstem.protocol.errors import ErrorCode

DELETE_EXAMPLES = examples(
    "mainstem groups delete billing", "mainstem groups delete old-1 old-2 --yes  [dim]# does not ask[/dim]"
)
DELETE_OFFSETS_EXAMPLES = examples(
    "mainstem groups delete-offsets billing --topic orders",
    "mainstem groups delete-offsets billing --topic orders:0,2 --topic audit",
)


def delete(groups: GroupNames, yes: Yes = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Delete groups with all of their offsets; only groups without members can be deleted."""
    names = list(dict.fromkeys(groups))
    admin = admin_client(bootstrap)
    if sys.stdin.isatty() and not yes:
        typer.confirm(f"Delete {', '.join(names)} and all committed offsets?", abort=True)
    failed: list[str] = []
    hint: str | None = None
    futures = admin.delete_consumer_groups(names, request_timeout=REQUEST_TIMEOUT_S)
    for name, future in futures.items():
        try:
            future.result()
            print(f"deleted {name}", flush=True)
        except KafkaException as error:
            reason = _reason(error.args[0], name, bootstrap)
            say(f"not deleted: {reason.message}")
            failed.append(name)
            hint = hint or reason.hint
    if failed:
        raise CommandError(f"{len(failed)} of {len(names)} groups are not deleted", hint)


def _reason(error: KafkaError, name: str, bootstrap: str) -> CommandError:
    if error.code() > 0:  # the broker's own answer
        return refusal(error.code(), name)
    return advise(error, bootstrap, name)


def delete_offsets(
    group: GroupName,
    topics: Topics = [],  # noqa: B006 - typer reads the default, nothing changes it
    all_topics: AllTopics = False,
    yes: Yes = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Delete committed offsets of topics that no member of the group reads."""
    check_scope(topics, all_topics)
    wanted = parse_topics(topics)
    admin = admin_client(bootstrap)
    committed = committed_offsets(admin, group, bootstrap)
    if all_topics:
        partitions = list(committed)
    else:
        counts = {
            name: len(topic.partitions) for name, topic in cluster_metadata(admin, bootstrap).topics.items()
        }
        # Offsets outlive a deleted topic, and can still be named.
        for topic, number in committed:
            counts[topic] = max(counts.get(topic, 0), number + 1)
        partitions = existing_partitions(wanted, counts)
        if any(numbers is None for numbers in wanted.values()):
            partitions = [
                part for part in partitions if wanted[part[0]] is not None or part in committed
            ] or partitions
    if not partitions:
        raise CommandError(
            f"group {group} has no committed offsets", "`mainstem groups list` shows the groups"
        )
    if sys.stdin.isatty() and not yes:
        typer.confirm(f"Delete {len(partitions)} committed offsets of {group}?", abort=True)
    with GroupRequests(bootstrap) as requests:
        results = requests.delete_offsets(group, partitions)
    failed: list[ErrorCode] = []
    for partition in partitions:
        name = f"{partition[0]}-{partition[1]}"
        code = results.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR)
        if code == ErrorCode.NONE:
            what = "deleted" if partition in committed else "nothing was committed for"
            print(f"{what} {name}", flush=True)
        else:
            say(f"not deleted: {name}: {code.message}")
            failed.append(code)
    if failed:
        hint = refusal(failed[0], "").hint
        raise CommandError(f"{len(failed)} of {len(partitions)} offsets are not deleted", hint)
