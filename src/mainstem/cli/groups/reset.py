"""`mainstem groups reset-offsets`: shows where each partition would go, and goes there with `--execute`.

The group's own members decide where it stands while there are any, so it is refused then.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from mainstem.cli.clusters.target import Target, takes_target
from mainstem.cli.errors import CommandError
from mainstem.cli.groups import reset_plan as planning
from mainstem.cli.groups.description import GroupFacts, describe_groups, no_such_group
from mainstem.cli.groups.offsets import active_group, commit_offsets, committed_offsets
from mainstem.cli.groups.options import GroupName
from mainstem.cli.groups.requests import list_groups
from mainstem.cli.groups.reset_plan import Goal, Move
from mainstem.cli.groups.scope import (
    AllTopics,
    Topics,
    check_scope,
    existing_partitions,
    parse_topics,
)
from mainstem.cli.output.rendering import examples, print_json, print_table
from mainstem.cli.streams import say
from mainstem.cli.typed.options import Json
from mainstem.protocol.resources import TopicPartition
from mainstem.wire import Cluster

EXAMPLES = examples(
    "mainstem groups reset-offsets billing --topic orders --to-earliest  [dim]# only shows the plan[/dim]",
    "mainstem groups reset-offsets billing --topic orders --to-earliest --execute",
    "mainstem groups reset-offsets billing --topic orders:0,2 --to-offset 42 --execute",
    "mainstem groups reset-offsets billing --all-topics --by-duration 2h30m --execute",
    "mainstem groups reset-offsets billing --all-topics --to-current --export offsets.csv",
    "mainstem groups reset-offsets billing --from-file offsets.csv --execute",
)

ToEarliest = Annotated[bool, typer.Option("--to-earliest", metavar="", help="To the oldest record.")]
ToLatest = Annotated[bool, typer.Option("--to-latest", metavar="", help="To the end: skip what is there.")]
ToCurrent = Annotated[
    bool, typer.Option("--to-current", metavar="", help="Where it is; the end where nothing is committed.")
]
ToOffset = Annotated[
    int | None, typer.Option("--to-offset", metavar="N", min=0, help="To offset N of each partition.")
]
ShiftBy = Annotated[
    int | None, typer.Option("--shift-by", metavar="N", help="N records forward, or back with -N.")
]
ToDatetime = Annotated[
    str | None,
    typer.Option(
        "--to-datetime",
        metavar="TIME",
        help="To the first record from then on: 2026-01-31T12:00 (local unless it says) or milliseconds.",
    ),
]
ByDuration = Annotated[
    str | None,
    typer.Option(
        "--by-duration", metavar="TIME", help="To the first record since then: 10m, 2h30m or PT2H30M."
    ),
]
FromFile = Annotated[
    Path | None,
    typer.Option("--from-file", metavar="CSV", help="To the offsets of a file: topic,partition,offset."),
]
Export = Annotated[
    str | None,
    typer.Option("--export", metavar="CSV", help="Write the plan to a file for --from-file; - prints it."),
]
Execute = Annotated[
    bool, typer.Option("--execute", metavar="", help="Do it. Without it, nothing is changed.")
]


@takes_target
def reset_offsets(
    target: Target,
    group: GroupName,
    topics: Topics = [],  # noqa: B006 - typer reads the default, nothing changes it
    all_topics: AllTopics = False,
    to_earliest: ToEarliest = False,
    to_latest: ToLatest = False,
    to_current: ToCurrent = False,
    to_offset: ToOffset = None,
    shift_by: ShiftBy = None,
    to_datetime: ToDatetime = None,
    by_duration: ByDuration = None,
    from_file: FromFile = None,
    export: Export = None,
    execute: Execute = False,
    as_json: Json = False,
) -> None:
    """Move a group to other offsets; shows the plan, and follows it only with --execute."""
    goal = planning.parse_goal(
        to_earliest=to_earliest,
        to_latest=to_latest,
        to_current=to_current,
        to_offset=to_offset,
        shift_by=shift_by,
        to_datetime=to_datetime,
        by_duration=by_duration,
        from_file=from_file,
        now_ms=int(time.time() * 1000),
    )
    wanted = parse_topics(topics)
    if from_file is None:
        check_scope(topics, all_topics)
    elif topics or all_topics:
        raise CommandError("the file names its partitions itself", "leave --topic and --all-topics out", 2)
    with target.connect() as cluster:
        facts = describe_groups(cluster, [group]).get(group)
        committed = committed_offsets(cluster, group)
        goals = _goals(cluster, group, goal, wanted, committed, from_file)
        plan = planning.make_plan(cluster, goals, committed)
        _show(group, plan, export=export, as_json=as_json)
        sys.stdout.flush()  # the plan comes first also where both streams go into one file
        if facts is None and not committed:
            say(f"remark: there is no group {group} yet; committing offsets makes it")
        _refuse_if_active(group, facts, execute=execute)
        if execute:
            commit_offsets(cluster, group, {(move.topic, move.partition): move.new for move in plan})
            done = "1 offset" if len(plan) == 1 else f"{len(plan)} offsets"
            say(f"done: {done} of {group} {'is' if len(plan) == 1 else 'are'} set")
        else:
            say("nothing is changed yet: add --execute to do it")


def _goals(
    cluster: Cluster,
    group: str,
    goal: Goal | None,
    wanted: dict[str, list[int] | None],
    committed: dict[TopicPartition, int],
    from_file: Path | None,
) -> dict[TopicPartition, Goal]:
    """Which partitions go where; all of them exist."""
    counts = {name: len(topic.partitions) for name, topic in cluster.metadata().items()}
    if goal is None:
        assert from_file is not None
        goals = planning.read_csv(from_file, group)
        named: dict[str, list[int] | None] = {}
        for topic, number in goals:
            named[topic] = [*(named.get(topic) or []), number]
        existing_partitions(named, counts)
        return goals
    if wanted:
        return dict.fromkeys(existing_partitions(wanted, counts), goal)
    if not committed:
        listed = list_groups(cluster)
        if all(item.group_id != group for item in listed):
            raise no_such_group(group, (item.group_id for item in listed))
        raise CommandError(f"group {group} has no committed offsets", "name the topics: --topic TOPIC")
    gone = sorted({topic for topic, number in committed if number >= counts.get(topic, 0)})
    if gone:
        say(f"remark: left out, because they are not there any more: {', '.join(gone)}")
    return {part: goal for part in committed if part[1] < counts.get(part[0], 0)}


def _show(group: str, plan: list[Move], *, export: str | None, as_json: bool) -> None:
    if export == "-":
        print(planning.to_csv(plan), end="")
        return
    if as_json:
        print_json({"group": group, "plan": [move._asdict() for move in plan]})
    else:
        rows = [
            (move.topic, move.partition, _number(move.current), move.new, _change(move), move.note)
            for move in plan
        ]
        columns = ("topic", "partition", "current", "new", "change", "remark")
        shown = len(columns) - (not any(move.note for move in plan))
        print_table(columns[:shown], [row[:shown] for row in rows], title=f"{group}: the plan")
    if export is not None:
        try:
            Path(export).write_text(planning.to_csv(plan), encoding="utf-8")
        except OSError as error:
            raise CommandError(
                f"cannot write {export} ({error.strerror})", "name a file that can be written"
            ) from None
        say(f"the plan is in {export}")


def _number(offset: int | None) -> int | str:
    return "-" if offset is None else offset


def _change(move: Move) -> str:
    if move.current is None:
        return "-"
    return f"{move.new - move.current:+d}" if move.new != move.current else "0"


def _refuse_if_active(group: str, facts: GroupFacts | None, *, execute: bool) -> None:
    if facts is None or not facts.is_active:
        return
    count = len(facts.members)
    refusal = active_group(group, f"{count} active member{'s' if count != 1 else ''} (state {facts.state})")
    if execute:
        raise refusal
    say(f"warning: {refusal.message}")
