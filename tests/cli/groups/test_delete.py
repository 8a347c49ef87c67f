"""`mainstem groups delete` and `delete-offsets`: what each item's line says, and the exit code."""

import pytest

from mainstem.testing import Broker
from tests.cli.conftest import Mainstem
from tests.cli.group_members import commit, committed, members
from tests.support.target import unique_name

NONE = -1001


@pytest.fixture
def topic(mainstem: Mainstem) -> str:
    name = unique_name("deleted")
    assert mainstem("topics", "create", name, "--partitions", "3").returncode == 0
    return name


def test_groups_are_deleted_with_their_offsets(broker: Broker, mainstem: Mainstem, topic: str) -> None:
    first, second = unique_name("first"), unique_name("second")
    for group in (first, second):
        commit(broker.bootstrap_servers, group, topic, 0, 0, 0)
    done = mainstem("groups", "delete", first, second)
    assert (done.returncode, done.stdout) == (0, f"deleted {first}\ndeleted {second}\n")
    assert committed(broker.bootstrap_servers, first, topic, 3) == [NONE] * 3
    assert not {first, second} & set(mainstem("groups", "list").stdout.splitlines())


def test_one_failure_does_not_keep_the_others_from_being_deleted(
    broker: Broker, mainstem: Mainstem, topic: str
) -> None:
    active, idle, absent = unique_name("active"), unique_name("idle"), unique_name("absent")
    commit(broker.bootstrap_servers, idle, topic, 0)
    with members(broker.bootstrap_servers, active, topic, (3,)):
        done = mainstem("groups", "delete", active, idle, absent)
    assert done.returncode == 1
    assert done.stdout == f"deleted {idle}\n"
    refused, missing, summary, hint = done.stderr.splitlines()
    assert refused == f"not deleted: {active}: The group still has members."
    assert missing == f"not deleted: {absent}: There is no such group."
    assert summary == "mainstem: 2 of 3 groups are not deleted"
    assert hint.startswith("  -> stop its consumers first; ")


def test_offsets_are_deleted_by_topic_and_by_partition(
    broker: Broker, mainstem: Mainstem, topic: str
) -> None:
    group = unique_name("offsets")
    commit(broker.bootstrap_servers, group, topic, 0, 0, 0)
    one = mainstem("groups", "delete-offsets", group, "--topic", f"{topic}:1")
    assert (one.returncode, one.stdout) == (0, f"deleted {topic}-1\n")
    assert committed(broker.bootstrap_servers, group, topic, 3) == [0, NONE, 0]
    again = mainstem("groups", "delete-offsets", group, "--topic", f"{topic}:1")
    assert (again.returncode, again.stdout) == (0, f"nothing was committed for {topic}-1\n")
    rest = mainstem("groups", "delete-offsets", group, "--topic", topic)
    assert (rest.returncode, rest.stdout) == (0, f"deleted {topic}-0\ndeleted {topic}-2\n")
    assert committed(broker.bootstrap_servers, group, topic, 3) == [NONE] * 3


def test_offsets_that_members_use_are_kept(broker: Broker, mainstem: Mainstem, topic: str) -> None:
    group, other = unique_name("subscribed"), unique_name("other")
    assert mainstem("topics", "create", other).returncode == 0
    commit(broker.bootstrap_servers, group, topic, 0)
    commit(broker.bootstrap_servers, group, other, 0)
    with members(broker.bootstrap_servers, group, topic, (3,)):
        refused = mainstem("groups", "delete-offsets", group, "--all-topics")
    assert refused.returncode == 1
    assert refused.stdout == f"deleted {other}-0\n"
    assert refused.stderr.splitlines()[:2] == [
        f"not deleted: {topic}-0: The group is subscribed to the topic, so its offsets cannot be deleted.",
        "mainstem: 1 of 2 offsets are not deleted",
    ]
    assert committed(broker.bootstrap_servers, group, topic, 1) == [0]


def test_what_is_not_there_is_named(broker: Broker, mainstem: Mainstem, topic: str) -> None:
    group = unique_name("absent")
    cases = {
        (group, "--topic", topic): f"delete offsets of {group}: There is no such group.",
        (group, "--all-topics"): f"group {group} has no committed offsets",
        (group, "--topic", f"{topic}x"): f"there is no topic '{topic}x'",
    }
    for arguments, message in cases.items():
        result = mainstem("groups", "delete-offsets", *arguments)
        assert result.returncode == 1
        assert result.stderr.startswith(f"mainstem: {message}"), result.stderr
        assert "\n  -> " in result.stderr
    assert mainstem("groups", "delete-offsets", group).returncode == 2
