"""`mainstem groups reset-offsets`: the plan, and what is committed after it was executed."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from mainstem.cli.errors import CommandError
from mainstem.cli.groups.reset_plan import Goal, Move, Reach, plan_move, read_csv, to_csv
from mainstem.cli.groups.scope import parse_topics
from mainstem.testing import Broker
from tests.cli.command import run_command
from tests.cli.conftest import Mainstem
from tests.cli.group_members import commit, committed, members
from tests.support.target import unique_name

SECOND_MS = 1000


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    """Two partitions with ten messages each, of the seconds 0 to 9 of the year 2001."""
    name = unique_name("reset")
    environment = {"MAINSTEM_BOOTSTRAP": broker.bootstrap_servers}
    options = ("--partitions", "2", "--config", "retention.ms=-1")
    assert run_command("topics", "create", name, *options, environment=environment).returncode == 0
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for partition in range(2):
        for number in range(10):
            timestamp_ms = 978_307_200_000 + number * SECOND_MS
            producer.produce(name, str(number), partition=partition, timestamp=timestamp_ms)
    assert producer.flush(30) == 0
    return name


@pytest.fixture
def group(broker: Broker, topic: str) -> str:
    """A group that stands at 4 and 6."""
    name = unique_name("group")
    commit(broker.bootstrap_servers, name, topic, 4, 6)
    return name


def plan_of(mainstem: Mainstem, *arguments: str) -> list[tuple[int, int | None, int]]:
    done = mainstem("groups", "reset-offsets", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)["plan"]
    return [(move["partition"], move["current"], move["new"]) for move in plan]


def test_nothing_is_changed_without_execute(
    broker: Broker, mainstem: Mainstem, topic: str, group: str
) -> None:
    shown = mainstem("groups", "reset-offsets", group, "--topic", topic, "--to-earliest")
    assert shown.returncode == 0
    assert [line.split() for line in shown.stdout.splitlines()] == [
        [f"{group}:", "the", "plan"],
        ["topic", "partition", "current", "new", "change"],
        [topic, "0", "4", "0", "-4"],
        [topic, "1", "6", "0", "-6"],
    ]
    assert shown.stderr == "nothing is changed yet: add --execute to do it\n"
    assert committed(broker.bootstrap_servers, group, topic, 2) == [4, 6]

    done = mainstem("groups", "reset-offsets", group, "--topic", topic, "--to-earliest", "--execute")
    assert done.stdout == shown.stdout
    assert done.stderr == f"done: 2 offsets of {group} are set\n"
    assert committed(broker.bootstrap_servers, group, topic, 2) == [0, 0]


@pytest.mark.parametrize(
    ("options", "new"),
    [
        (("--to-earliest",), [0, 0]),
        (("--to-latest",), [10, 10]),
        (("--to-current",), [4, 6]),
        (("--to-offset", "8"), [8, 8]),
        (("--to-offset", "99"), [10, 10]),
        (("--shift-by", "-5"), [0, 1]),
        (("--shift-by", "3"), [7, 9]),
        (("--to-datetime", "2001-01-01T00:00:03Z"), [3, 3]),
        (("--to-datetime", "978307207000"), [7, 7]),
        (("--to-datetime", "2001-02-01"), [10, 10]),
        (("--by-duration", "PT1H"), [10, 10]),
        (("--by-duration", "5200w"), [0, 0]),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_every_way_to_say_where(
    broker: Broker, mainstem: Mainstem, topic: str, group: str, options: tuple[str, ...], new: list[int]
) -> None:
    wanted = [(0, 4, new[0]), (1, 6, new[1])]
    assert plan_of(mainstem, group, "--all-topics", *options, "--execute") == wanted
    assert committed(broker.bootstrap_servers, group, topic, 2) == new


def test_some_partitions_only(broker: Broker, mainstem: Mainstem, topic: str, group: str) -> None:
    assert plan_of(mainstem, group, "--topic", f"{topic}:1", "--to-latest", "--execute") == [(1, 6, 10)]
    assert committed(broker.bootstrap_servers, group, topic, 2) == [4, 10]


def test_a_plan_goes_through_a_file(
    broker: Broker, mainstem: Mainstem, topic: str, group: str, tmp_path: Path
) -> None:
    file = tmp_path / "offsets.csv"
    kept = mainstem("groups", "reset-offsets", group, "--all-topics", "--to-current", "--export", str(file))
    assert (kept.returncode, file.read_text()) == (0, f"{topic},0,4\n{topic},1,6\n")
    printed = mainstem("groups", "reset-offsets", group, "--all-topics", "--to-current", "--export", "-")
    assert printed.stdout == file.read_text()

    assert plan_of(mainstem, group, "--all-topics", "--to-latest", "--execute") == [(0, 4, 10), (1, 6, 10)]
    back = plan_of(mainstem, group, "--from-file", str(file), "--execute")
    assert back == [(0, 10, 4), (1, 10, 6)]
    assert committed(broker.bootstrap_servers, group, topic, 2) == [4, 6]


def test_a_group_with_members_is_refused_with_the_reason(
    broker: Broker, mainstem: Mainstem, topic: str, group: str
) -> None:
    arguments = ("groups", "reset-offsets", group, "--topic", topic, "--to-earliest")
    with members(broker.bootstrap_servers, group, topic, (2,)):
        refused = mainstem(*arguments, "--execute")
        assert refused.returncode == 1
        message, hint = refused.stderr.splitlines()
        assert message == (
            f"mainstem: group {group} has 1 active member (state Stable): "
            "offsets can only be reset while nobody is in it"
        )
        assert hint.startswith("  -> stop its consumers and try again; ")
        planned = mainstem(*arguments)
        assert planned.returncode == 0
        assert planned.stdout == refused.stdout
        assert planned.stderr.startswith(f"warning: group {group} has 1 active member")
    assert committed(broker.bootstrap_servers, group, topic, 2) == [4, 6]
    assert mainstem(*arguments, "--execute").returncode == 0


def test_a_group_that_is_not_there_yet(broker: Broker, mainstem: Mainstem, topic: str) -> None:
    group = unique_name("new")
    arguments = ("groups", "reset-offsets", group, "--to-latest")
    nothing = mainstem(*arguments, "--all-topics")
    assert nothing.returncode == 1
    assert nothing.stderr.startswith(f"mainstem: there is no group '{group}'\n")
    made = mainstem(*arguments, "--topic", f"{topic}:0", "--execute")
    assert made.returncode == 0
    assert made.stderr.startswith(f"remark: there is no group {group} yet")
    assert committed(broker.bootstrap_servers, group, topic, 1) == [10]
    shift = mainstem("groups", "reset-offsets", group, "--topic", topic, "--shift-by", "1")
    assert shift.returncode == 1
    assert shift.stderr.startswith(f"mainstem: {topic}-1 has no committed offset to shift\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--all-topics",), "where to?"),
        (("--all-topics", "--to-latest", "--to-earliest"), "there are several places to go to"),
        (("--to-latest",), "which partitions?"),
        (("--topic", "t", "--all-topics", "--to-latest"), "--all-topics leaves nothing"),
        (("--topic", "t:x", "--to-latest"), "--topic 't:x' is not TOPIC"),
        (("--all-topics", "--by-duration", "soon"), "'soon' is not a length of time"),
        (("--all-topics", "--to-datetime", "soon"), "'soon' is not a time"),
        (("--topic", "t", "--from-file", "f"), "the file names its partitions itself"),
    ],
)
def test_a_wrong_command_line_says_what_to_write(
    mainstem: Mainstem, options: tuple[str, ...], message: str
) -> None:
    result = mainstem("groups", "reset-offsets", "g", *options)
    assert result.returncode == 2
    assert result.stderr.startswith(f"mainstem: {message}")
    assert "\n  -> " in result.stderr


def test_what_does_not_exist_is_named(mainstem: Mainstem, topic: str, group: str, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("orders;0;1\n")
    (tmp_path / "gone.csv").write_text(f"{topic},7,1\n")
    (tmp_path / "other.csv").write_text(f"somebody-else,{topic},0,1\n")
    cases = {
        ("--topic", f"{topic}x", "--to-latest"): f"there is no topic '{topic}x'",
        ("--topic", f"{topic}:2", "--to-latest"): f"{topic} has no partition 2",
        ("--from-file", str(tmp_path / "absent.csv")): f"cannot read {tmp_path / 'absent.csv'}",
        ("--from-file", str(tmp_path / "bad.csv")): f"{tmp_path / 'bad.csv'}, line 1: 'orders;0;1' is not",
        ("--from-file", str(tmp_path / "gone.csv")): f"{topic} has no partition 7",
        ("--from-file", str(tmp_path / "other.csv")): f"{tmp_path / 'other.csv'} has no offsets for {group}",
    }
    for options, message in cases.items():
        result = mainstem("groups", "reset-offsets", group, *options, "--execute")
        assert result.returncode == 1
        assert result.stderr.startswith(f"mainstem: {message}"), result.stderr
        assert "\n  -> " in result.stderr


def test_what_cannot_be_met_is_noted() -> None:
    reach = Reach(5, 10)
    assert plan_move(("t", 0), Goal("offset", 2), None, reach, -1) == Move(
        "t", 0, None, 5, "2 is out of range: the earliest"
    )
    assert plan_move(("t", 0), Goal("time", 1), 7, reach, -1).note == "no record is that young: the latest"
    assert plan_move(("t", 0), Goal("current"), None, reach, -1).new == 10
    with pytest.raises(CommandError, match="no committed offset to shift"):
        plan_move(("t", 0), Goal("shift", 1), None, reach, -1)


def test_files_of_several_groups_and_with_headings(tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    file.write_text("group,topic,partition,offset\na,t,0,1\nb,t,0,2\n\na, u ,1, 3\n")
    assert read_csv(file, "a") == {("t", 0): Goal("offset", 1), ("u", 1): Goal("offset", 3)}
    assert to_csv([Move("t", 0, None, 1), Move("u", 1, 5, 3)]) == "t,0,1\nu,1,3\n"


def test_topics_with_partitions() -> None:
    assert parse_topics(["a", "b:0,2", "b:5"]) == {"a": None, "b": [0, 2, 5]}
    assert parse_topics(["a:1", "a"]) == {"a": None}
