"""Where `mainstem groups reset-offsets` moves each partition, decided before anything is changed.

A plan can be written to a CSV file and read back: lines of topic, partition and offset, as Apache Kafka's own
tool writes and reads them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from mainstem import wire
from mainstem.cli.clusters.offsets import find_offsets
from mainstem.cli.errors import CommandError
from mainstem.cli.typed.times import parse_time_ms
from mainstem.durations import duration_ms
from mainstem.protocol.resources import TopicPartition

EARLIEST, LATEST, CURRENT, OFFSET, SHIFT, TIME = "earliest", "latest", "current", "offset", "shift", "time"
WAYS = (
    "--to-earliest, --to-latest, --to-current, --to-offset, --shift-by, "
    "--to-datetime, --by-duration and --from-file"
)


class Goal(NamedTuple):
    """Where to go, as asked for; `value` is an offset, a number of records or a time in ms."""

    kind: str
    value: int = 0


class Move(NamedTuple):
    """One line of the plan; `note` says where the wish could not be met as it was."""

    topic: str
    partition: int
    current: int | None
    new: int
    note: str = ""


class Reach(NamedTuple):
    """What one partition holds: the first offset, and the one after the last."""

    earliest: int
    latest: int


def parse_goal(
    *,
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    from_file: Path | None,
    now_ms: int,
) -> Goal | None:
    """The goal of these options, of which exactly one is given; None when a file has the offsets."""
    asked = (to_offset, shift_by, to_datetime, by_duration, from_file)
    count = sum((to_earliest, to_latest, to_current, *(option is not None for option in asked)))
    if count != 1:
        problem = "where to?" if count == 0 else "there are several places to go to"
        raise CommandError(problem, f"give one of {WAYS}", 2)
    if to_offset is not None:
        return Goal(OFFSET, to_offset)
    if shift_by is not None:
        return Goal(SHIFT, shift_by)
    if to_datetime is not None:
        return Goal(TIME, parse_time_ms(to_datetime, now_ms))
    if by_duration is not None:
        ago_ms = duration_ms(by_duration)
        if ago_ms is None:
            raise CommandError(f"{by_duration!r} is not a length of time", "write 10m, 2h30m or PT2H30M", 2)
        # A negative time is one of the special values of ListOffsets.
        return Goal(TIME, max(0, now_ms - ago_ms))
    if from_file is not None:
        return None
    return Goal(EARLIEST if to_earliest else LATEST if to_latest else CURRENT)


def make_plan(
    cluster: wire.Cluster, goals: Mapping[TopicPartition, Goal], committed: Mapping[TopicPartition, int]
) -> list[Move]:
    """The new offset of each partition."""
    earliest = find_offsets(cluster, goals, wire.EARLIEST)
    latest = find_offsets(cluster, goals, wire.LATEST)
    at_time: dict[TopicPartition, int] = {}
    for time_ms in {goal.value for goal in goals.values() if goal.kind == TIME}:
        timed = [partition for partition, goal in goals.items() if goal == Goal(TIME, time_ms)]
        at_time |= find_offsets(cluster, timed, time_ms)
    plan = []
    for partition, goal in sorted(goals.items()):
        if partition not in earliest or partition not in latest:
            raise CommandError(
                f"nobody leads {partition[0]}-{partition[1]} at the moment",
                f"`mainstem topics describe {partition[0]}` shows its state; try again when it has a leader",
            )
        reach = Reach(earliest[partition], latest[partition])
        plan.append(plan_move(partition, goal, committed.get(partition), reach, at_time.get(partition, -1)))
    return plan


def plan_move(partition: TopicPartition, goal: Goal, current: int | None, reach: Reach, at_time: int) -> Move:
    """Where this partition goes. `at_time` is the first offset at the goal's time, or -1."""
    note = ""
    if goal.kind == EARLIEST:
        new = reach.earliest
    elif goal.kind == LATEST:
        new = reach.latest
    elif goal.kind == CURRENT:
        new = reach.latest if current is None else current
        note = "nothing was committed: the latest" if current is None else ""
    elif goal.kind == TIME:
        new = reach.latest if at_time < 0 else at_time
        note = "no record is that young: the latest" if at_time < 0 else ""
    else:
        new = goal.value
        if goal.kind == SHIFT:
            if current is None:
                raise CommandError(
                    f"{partition[0]}-{partition[1]} has no committed offset to shift",
                    "leave it out with --topic TOPIC:PARTITION,..., or go --to-earliest or --to-latest first",
                )
            new += current
        if not reach.earliest <= new <= reach.latest:
            end = "earliest" if new < reach.earliest else "latest"
            note = f"{new} is out of range: the {end}"
            new = reach.earliest if new < reach.earliest else reach.latest
    return Move(*partition, current, new, note)


def read_csv(path: Path, group_id: str) -> dict[TopicPartition, Goal]:
    """The offsets that a file gives for this group: `topic,partition,offset`, or with the group in front."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CommandError(
            f"cannot read {path} ({reason})",
            "name a file that `groups reset-offsets --export FILE` has written",
        ) from None
    goals: dict[TopicPartition, Goal] = {}
    for number, row in enumerate(csv.reader(io.StringIO(text)), 1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or (number == 1 and cells[-3:] == ["topic", "partition", "offset"]):
            continue
        named = cells[-3:]
        if len(cells) not in (3, 4) or not (named[0] and named[1].isdecimal() and named[2].isdecimal()):
            raise CommandError(
                f"{path}, line {number}: {','.join(row)!r} is not TOPIC,PARTITION,OFFSET",
                "write lines like orders,0,42; with four columns the first one is the group",
            )
        if len(cells) == 3 or cells[0] == group_id:
            goals[named[0], int(named[1])] = Goal(OFFSET, int(named[2]))
    if not goals:
        raise CommandError(
            f"{path} has no offsets for {group_id}", "write lines like orders,0,42 (topic, partition, offset)"
        )
    return goals


def to_csv(plan: Iterable[Move]) -> str:
    """The plan as `read_csv` takes it, without a heading."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows((move.topic, move.partition, move.new) for move in plan)
    return text.getvalue()
