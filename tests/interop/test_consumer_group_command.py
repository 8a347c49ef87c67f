"""Apache Kafka's ConsumerGroupCommand works on both brokers alike, and `mainstem groups` says the same.

The groups are made once, and each run is about all of them.
"""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import run_command
from tests.cli.group_members import commit, committed, members
from tests.support.clients import Message, write_confluent
from tests.support.kafka_peer import kafka_tool
from tests.support.target import KEEP_FOREVER, Target, unique_name
from tests.support.tool_server import ToolResult

pytestmark = pytest.mark.peer

Rows = list[list[str]]


@dataclass
class Groups:
    """A topic of two partitions with ten records each, and three groups that have read some of them."""

    target: Target
    topic: str
    offsets_only: str  # no members; at 4 and 6
    classic: str  # one static member; at 1 and 2
    consumer: str  # one member of the consumer protocol; at 3 and 3

    def tool(self, *arguments: str) -> ToolResult:
        """Apache Kafka's command."""
        server = ("--bootstrap-server", self.target.bootstrap_servers)
        return kafka_tool("consumer.group.ConsumerGroupCommand", *server, *arguments)

    def tool_on_all(self, *arguments: str) -> Rows:
        """What it prints about the three groups: the words of each line that starts with one of them."""
        names = (self.offsets_only, self.classic, self.consumer)
        options = [part for name in names for part in ("--group", name)]
        printed = self.tool(*arguments, *options).check()
        rows = [re.split(r"\s+", line.strip()) for line in printed.splitlines()]
        return [row for row in rows if row[0] in names]

    def mainstem(self, *arguments: str) -> str:
        """Our own command."""
        environment = {"MAINSTEM_BOOTSTRAP": self.target.bootstrap_servers}
        done = run_command("groups", *arguments, environment=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def described(self, name: str) -> dict:
        (group,) = json.loads(self.mainstem("describe", "--json", name))
        return group


@pytest.fixture(scope="module", params=["mainstem", "kafka"])
def groups(request: pytest.FixtureRequest) -> Iterator[Groups]:
    target: Target = request.getfixturevalue(request.param)
    topic = target.create_topic(partitions=2, configs=KEEP_FOREVER)
    for partition in range(2):
        records = [Message(b"x", timestamp_ms=1_000_000 + number * 1000) for number in range(10)]
        write_confluent(target, topic, records, partition=partition)
    names = [unique_name(prefix) for prefix in ("offsets", "classic", "consumer")]
    servers = target.bootstrap_servers
    for name, offsets in zip(names, [(4, 6), (1, 2), (3, 3)], strict=True):
        commit(servers, name, topic, *offsets)
    with ExitStack() as stack:
        static: Any = {"group.instance.id": "static-1"}
        modern: Any = {"group.protocol": "consumer"}
        stack.enter_context(members(servers, names[1], topic, (2,), **static))
        stack.enter_context(members(servers, names[2], topic, (2,), **modern))
        yield Groups(target, topic, *names)


def test_groups_are_listed_with_type_and_state(groups: Groups) -> None:
    names = (groups.offsets_only, groups.classic, groups.consumer)
    plain = groups.tool("--list").check().split()
    assert set(names) <= set(plain)
    header, *rows = (line.split() for line in groups.tool("--list", "--state", "--type").check().splitlines())
    assert header == ["GROUP", "TYPE", "STATE"]
    assert sorted(row for row in rows if row[0] in names) == sorted(
        [
            [groups.offsets_only, "Classic", "Empty"],
            [groups.classic, "Classic", "Stable"],
            [groups.consumer, "Consumer", "Stable"],
        ]
    )
    only = groups.tool("--list", "--state", "stable", "--type", "consumer").check()
    assert groups.consumer in only
    assert groups.classic not in only
    listed = {item["group_id"]: item for item in json.loads(groups.mainstem("list", "--json"))}
    assert [(listed[name]["type"], listed[name]["state"]) for name in names] == [
        ("classic", "Empty"),
        ("classic", "Stable"),
        ("consumer", "Stable"),
    ]


def test_offsets_and_lag_are_the_same_in_both_commands(groups: Groups) -> None:
    rows = groups.tool_on_all("--describe", "--offsets")
    assert [row[:6] for row in sorted(rows)] == sorted(
        [
            [groups.offsets_only, groups.topic, "0", "4", "10", "6"],
            [groups.offsets_only, groups.topic, "1", "6", "10", "4"],
            [groups.classic, groups.topic, "0", "1", "10", "9"],
            [groups.classic, groups.topic, "1", "2", "10", "8"],
            [groups.consumer, groups.topic, "0", "3", "10", "7"],
            [groups.consumer, groups.topic, "1", "3", "10", "7"],
        ]
    )
    for name in (groups.offsets_only, groups.classic, groups.consumer):
        ours = [
            [name, *(str(cell) if cell is not None else "-" for cell in _cells(part))]
            for part in groups.described(name)["partitions"]
        ]
        assert ours == sorted(row for row in rows if row[0] == name)


def _cells(part: dict) -> list:
    names = ("topic", "partition", "committed", "log_end", "lag", "member_id", "host", "client_id")
    return [part[name] for name in names]


def test_members_are_the_same_in_both_commands(groups: Groups) -> None:
    rows = groups.tool_on_all("--describe", "--members", "--verbose")
    (static,) = (row for row in rows if row[0] == groups.classic)
    assert re.fullmatch(r"static-1-[\da-f-]{36}", static[1])
    assert static[2:] == ["static-1", "/127.0.0.1", "client-0", "2", "-", f"{groups.topic}:0,1", "-", "-"]
    (modern,) = (row for row in rows if row[0] == groups.consumer)
    assert len(rows) == 2  # the group of offsets has none
    epoch, assigned = modern[5], f"{groups.topic}:0,1"
    assert modern[2:] == ["/127.0.0.1", "client-0", "2", epoch, assigned, epoch, assigned]
    ours = groups.described(groups.consumer)
    assert (str(ours["epoch"]), str(ours["assignment_epoch"])) == (epoch, epoch)
    (member,) = ours["members"]
    assert [member["member_id"], str(member["epoch"]), _text(member["assignment"])] == [
        modern[1],
        epoch,
        assigned,
    ]
    assert member["target"] == member["assignment"]
    (member,) = groups.described(groups.classic)["members"]
    assert [member["member_id"], member["instance_id"], _text(member["assignment"])] == [
        static[1],
        static[2],
        static[7],
    ]


def _text(assignment: dict[str, list[int]]) -> str:
    return ";".join(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in assignment.items())


def test_states_are_the_same_in_both_commands(groups: Groups) -> None:
    rows = {row[0]: row[1:] for row in groups.tool_on_all("--describe", "--state", "--verbose")}
    ours = {name: groups.described(name) for name in rows}
    epoch = str(ours[groups.consumer]["epoch"])
    coordinator = [ours[groups.classic]["coordinator"], f"({groups.target.node_id})"]
    assert rows == {
        groups.offsets_only: [*coordinator, "-", "Empty", "-", "-", "0"],
        groups.classic: [*coordinator, "range", "Stable", "-", "-", "1"],
        groups.consumer: [*coordinator, "uniform", "Stable", epoch, epoch, "1"],
    }
    for name, row in rows.items():
        group = ours[name]
        assert [group["assignor"] or "-", group["state"], str(len(group["members"]))] == [*row[2:4], row[6]]


def test_offsets_are_reset_by_one_command_as_by_the_other(groups: Groups, tmp_path: Path) -> None:
    group, topic, servers = unique_name("reset"), groups.topic, groups.target.bootstrap_servers
    commit(servers, group, topic, 4, 6)
    scope = ("--reset-offsets", "--group", group, "--all-topics")
    for wish in (
        ("--to-datetime", "1970-01-01T00:16:43.000Z"),
        ("--shift-by", "-5"),
    ):
        printed = groups.tool(*scope, *wish, "--export").check().splitlines()
        theirs = sorted(line for line in printed if line.startswith(topic))
        ours = groups.mainstem("reset-offsets", group, "--all-topics", *wish, "--export", "-")
        assert ours.splitlines() == theirs
    assert committed(servers, group, topic, 2) == [4, 6]

    plan = tmp_path / "plan.csv"
    plan.write_text(groups.mainstem("reset-offsets", group, "--topic", topic, "--to-latest", "--export", "-"))
    done = groups.tool("--reset-offsets", "--group", group, "--from-file", str(plan), "--execute").check()
    assert sorted(line.split() for line in done.splitlines() if line.startswith(group)) == [
        [group, topic, "0", "10"],
        [group, topic, "1", "10"],
    ]
    assert committed(servers, group, topic, 2) == [10, 10]
    refused = groups.tool(
        "--reset-offsets", "--group", groups.classic, "--all-topics", "--to-latest", "--execute"
    )
    assert (
        f"Assignments can only be reset if the group '{groups.classic}' is inactive, "
        "but the current state is Stable."
    ) in refused.stdout
    assert committed(servers, groups.classic, topic, 2) == [1, 2]


def test_offsets_and_groups_are_deleted(groups: Groups) -> None:
    group, topic = unique_name("deleted"), groups.topic
    commit(groups.target.bootstrap_servers, group, topic, 4, 6)
    done = groups.tool("--delete-offsets", "--group", group, "--topic", f"{topic}:0").check()
    assert done.startswith(f"Request succeeded for deleting offsets from group {group}.\n")
    assert committed(groups.target.bootstrap_servers, group, topic, 2) == [-1001, 6]
    used = ("--topic", f"{topic}:0", "--topic", f"{topic}:7")
    refused = groups.tool("--delete-offsets", "--group", groups.classic, *used).stdout
    assert "Encountered some partition-level error" in refused
    assert [re.sub(r".*\.(\w+Exception).*", r"\1", line) for line in refused.splitlines()[-2:]] == [
        "GroupSubscribedToTopicException",
        "UnknownTopicOrPartitionException",
    ]
    names = (group, groups.classic, unique_name("absent"))
    deleted = groups.tool("--delete", *(part for name in names for part in ("--group", name))).stdout
    failures = dict(re.findall(r"Group '(.*)' could not be deleted due to: .*\.(\w+): ", deleted))
    assert failures == {groups.classic: "GroupNotEmptyException", names[2]: "GroupIdNotFoundException"}
    assert deleted.rstrip().endswith(f"These consumer groups were deleted successfully: '{group}'")
    absent = groups.tool("--describe", "--offsets", "--group", group).stdout
    assert "GroupIdNotFoundException" in absent
