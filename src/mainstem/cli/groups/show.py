"""How the `groups` commands print groups, members and lag: for a person, and as JSON for a script."""

from __future__ import annotations

from typing import Any

from mainstem.cli.groups.description import (
    GroupFacts,
    MemberFacts,
    as_json,
    member_json,
)
from mainstem.cli.groups.lag import GroupLag
from mainstem.cli.output.rendering import partitions_text, print_table
from mainstem.cli.output.units import duration_text
from mainstem.coordinator.group.lag import Lag

NONE = "-"


def show_description(found: GroupLag) -> None:
    """One group with a line for each partition, as Apache Kafka's tool shows it."""
    rows = [
        (
            part.topic,
            part.partition,
            _number(part.committed),
            _number(part.log_end),
            _number(part.lag.records),
            part.member.member_id if part.member else NONE,
            part.member.host if part.member else NONE,
            part.member.client_id if part.member else NONE,
        )
        for part in found.partitions
    ]
    title = f"{_title(found.group)}  lag {_number(found.total().records)}"
    columns = ("topic", "partition", "committed", "end", "lag", "member", "host", "client")
    print_table(columns, rows, title=title)


def show_members(found: GroupLag) -> None:
    """One group with a line for each member; the target where it differs from what the member has."""
    group = found.group
    static = any(member.instance_id is not None for member in group.members)
    moving = any(_moving(member) for member in group.members)
    epochs = any(member.epoch is not None for member in group.members)
    mixed = len({member.protocol for member in group.members}) > 1
    columns = ["member", "client", "host", "partitions", "lag", *(["protocol"] * mixed)]
    columns += ["instance"] * static + ["epoch"] * epochs + ["target"] * moving + ["subscription"]
    rows = []
    for member in group.members:
        row: list[str | int] = [member.member_id, member.client_id, member.host]
        row += [partitions_text(member.assignment), _number(found.of_member(member).records)]
        row += [member.protocol] * mixed
        row += [member.instance_id or NONE] * static
        row += [_number(member.epoch)] * epochs
        row += [partitions_text(member.target or []) if _moving(member) else NONE] * moving
        row.append(member.regex or ",".join(member.topics) or NONE)
        rows.append(row)
    print_table(columns, rows, title=_title(group))


def show_lag(found: GroupLag) -> None:
    """One group's lag by partition and by member, with the sums."""
    group, total = found.group, found.total()
    summary = f"{_number(total.records)} records, {duration_text(total.seconds)} behind"
    rows = [
        (
            part.topic,
            part.partition,
            _number(part.committed),
            _number(part.log_end),
            _number(part.lag.records),
            duration_text(part.lag.seconds),
            part.member.client_id if part.member else NONE,
        )
        for part in found.partitions
    ]
    columns = ("topic", "partition", "committed", "end", "lag", "behind", "client")
    print_table(columns, rows, title=f"{group.group_id}  state {group.state}  lag {summary}")
    if group.members:
        lags = [(member, found.of_member(member)) for member in group.members]
        members = [
            (
                member.member_id,
                member.client_id,
                len(member.assignment),
                _number(lag.records),
                duration_text(lag.seconds),
            )
            for member, lag in lags
        ]
        print_table(("member", "client", "partitions", "lag", "behind"), members)
    if total.lost:
        print(f"{total.lost} of these records were deleted by retention before the group read them")


def description_json(found: GroupLag) -> dict[str, Any]:
    """`groups describe --json`: the group, its members and its partitions with lag in records."""
    return as_json(found.group) | {
        "lag": found.total().records,
        "partitions": [_partition_json(part) for part in found.partitions],
    }


def members_json(found: GroupLag) -> dict[str, Any]:
    """`groups members --json`."""
    group = found.group
    return {
        "group_id": group.group_id,
        "state": group.state,
        "members": [
            member_json(member) | {"lag": found.of_member(member).records} for member in group.members
        ],
    }


def lag_json(found: GroupLag) -> dict[str, Any]:
    """`groups lag --json`: seconds are the age of the oldest unread record."""
    group = found.group
    return {
        "group_id": group.group_id,
        "state": group.state,
        **_lag_fields(found.total()),
        "partitions": [_partition_json(part) | _lag_fields(part.lag) for part in found.partitions],
        "members": [
            {
                "member_id": member.member_id,
                "client_id": member.client_id,
                "host": member.host,
                **_lag_fields(found.of_member(member)),
            }
            for member in group.members
        ],
    }


def _title(group: GroupFacts) -> str:
    count = len(group.members)
    parts = [
        group.group_id,
        f"type {group.type}",
        f"state {group.state}",
        f"members {count}",
        *([f"assignor {group.assignor}"] if group.assignor else []),
        *([f"epoch {group.epoch}"] if group.epoch is not None else []),
        f"coordinator {group.coordinator} ({group.coordinator_id})",
    ]
    return "  ".join(parts)


def _moving(member: MemberFacts) -> bool:
    return member.target is not None and sorted(member.target) != sorted(member.assignment)


def _number(value: int | None) -> int | str:
    return NONE if value is None else value


def _lag_fields(lag: Lag) -> dict[str, Any]:
    return {"lag": lag.records, "lost": lag.lost, "seconds": lag.seconds}


def _partition_json(part: Any) -> dict[str, Any]:
    return {
        "topic": part.topic,
        "partition": part.partition,
        "committed": part.committed,
        "log_end": part.log_end,
        "lag": part.lag.records,
        "member_id": part.member.member_id if part.member else None,
        "client_id": part.member.client_id if part.member else None,
        "host": part.member.host if part.member else None,
    }
