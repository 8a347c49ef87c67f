"""`mainstem consume --group`: what is printed is committed, and the member leaves when it ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest
from confluent_kafka import KafkaError

from mainstem.cli.consume.group import explain
from mainstem.testing import Broker
from tests.cli.conftest import Mainstem
from tests.cli.group_members import await_condition, committed
from tests.support.target import unique_name

NONE = -1001
PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


@pytest.fixture
def topic(mainstem: Mainstem) -> str:
    """Two partitions, with 0 to 9 in each of them."""
    name = unique_name("shared")
    assert mainstem("topics", "create", name, "--partitions", "2").returncode == 0
    for partition in ("0", "1"):
        mainstem("produce", name, "-q", "--partition", partition, stdin="".join(f"{n}\n" for n in range(10)))
    return name


@contextmanager
def member(broker: Broker, topic: str, group: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """`mainstem consume --group` in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-m", "mainstem", "consume", topic, "--group", group, *options],
        env=os.environ | {"MAINSTEM_BOOTSTRAP": broker.bootstrap_servers},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def lines_of(stream: IO[str] | None, count: int) -> list[str]:
    assert stream is not None
    return [stream.readline().rstrip("\n") for _ in range(count)]


def state_of(mainstem: Mainstem, group: str) -> tuple[str, int]:
    """The state of the group and how many members it has; nothing while it does not exist."""
    described = mainstem("groups", "describe", "--json", group)
    if described.returncode != 0:
        return "", 0
    (found,) = json.loads(described.stdout)
    return found["state"], len(found["members"])


@PROTOCOLS
def test_each_run_goes_on_where_the_last_one_ended(
    broker: Broker, mainstem: Mainstem, topic: str, protocol: str
) -> None:
    group = unique_name("runs")
    options = ("--group", group, "--group-protocol", protocol, "--from-beginning", "--exit-at-end")
    first = mainstem("consume", topic, *options, "--max-messages", "7")
    assert len(first.stdout.splitlines()) == 7
    assert sum(max(0, offset) for offset in committed(broker.bootstrap_servers, group, topic, 2)) == 7
    second = mainstem("consume", topic, *options)
    assert sorted((first.stdout + second.stdout).split()) == sorted("0123456789" * 2)
    assert committed(broker.bootstrap_servers, group, topic, 2) == [10, 10]
    third = mainstem("consume", topic, *options)
    assert (third.returncode, third.stdout, third.stderr) == (0, "", "")
    assert state_of(mainstem, group) == ("Empty", 0)


def test_a_new_group_starts_at_the_end_and_finds_later_what_came_in_between(
    broker: Broker, mainstem: Mainstem, topic: str
) -> None:
    group = unique_name("latest")
    read = ("consume", topic, "--group", group, "--exit-at-end")
    assert mainstem(*read).stdout == ""
    assert committed(broker.bootstrap_servers, group, topic, 2) == [10, 10]
    mainstem("produce", topic, "--partition", "1", stdin="meanwhile\n")
    assert mainstem(*read, "--from-beginning").stdout == "meanwhile\n"


@PROTOCOLS
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_everything_committed_and_the_group_left(
    broker: Broker, mainstem: Mainstem, topic: str, number: signal.Signals, protocol: str
) -> None:
    group = unique_name("signal")
    with member(broker, topic, group, "--from-beginning", "--group-protocol", protocol) as process:
        assert sorted(lines_of(process.stdout, 20)) == sorted("0123456789" * 2)
        process.send_signal(number)
        rest, said = process.communicate(timeout=60)
        assert (process.returncode, rest, said) == (128 + number, "", "")
    assert committed(broker.bootstrap_servers, group, topic, 2) == [10, 10]
    assert state_of(mainstem, group) == ("Empty", 0)


def test_what_is_printed_is_committed_while_it_waits_for_more(
    broker: Broker, mainstem: Mainstem, topic: str
) -> None:
    group = unique_name("follow")
    with member(broker, topic, group, "-B") as process:
        lines_of(process.stdout, 20)
        await_condition(lambda: committed(broker.bootstrap_servers, group, topic, 2) == [10, 10])
        mainstem("produce", topic, "--partition", "0", stdin="more\n")
        assert lines_of(process.stdout, 1) == ["more"]
        await_condition(lambda: committed(broker.bootstrap_servers, group, topic, 2) == [11, 10])


@PROTOCOLS
def test_two_members_share_the_topic_and_nothing_is_read_twice(
    broker: Broker, mainstem: Mainstem, topic: str, protocol: str
) -> None:
    group = unique_name("two")
    options = ("-B", "--show", "partition", "--group-protocol", protocol)
    with member(broker, topic, group, *options) as one:
        seen = lines_of(one.stdout, 20)
        with member(broker, topic, group, *options) as two:
            await_condition(lambda: _is_shared(mainstem, group))
            for partition in ("0", "1"):
                mainstem("produce", topic, "--partition", partition, stdin=f"new {partition}\n")
            printed = [*lines_of(one.stdout, 1), *lines_of(two.stdout, 1)]
            assert sorted(printed) == ["0\tnew 0", "1\tnew 1"]
            two.send_signal(signal.SIGINT)
            assert two.communicate(timeout=60) == ("", "")
        await_condition(lambda: state_of(mainstem, group) == ("Stable", 1))
        one.send_signal(signal.SIGTERM)
        assert one.communicate(timeout=60) == ("", "")
    assert len(seen) == len(set(seen)) == 20
    assert committed(broker.bootstrap_servers, group, topic, 2) == [11, 11]


def _is_shared(mainstem: Mainstem, group: str) -> bool:
    (found,) = json.loads(mainstem("groups", "describe", "--json", group).stdout)
    owned = [len(member["assignment"]) for member in found["members"]]
    return found["state"] == "Stable" and owned == [1, 1]


def test_a_static_member_keeps_its_place_over_a_restart(
    broker: Broker, mainstem: Mainstem, topic: str
) -> None:
    group = unique_name("static")
    options = ("--group", group, "--group-instance-id", "the-one", "-B", "-e")
    assert len(mainstem("consume", topic, *options).stdout.split()) == 20
    (found,) = json.loads(mainstem("groups", "members", "--json", group).stdout)
    assert [member["instance_id"] for member in found["members"]] == ["the-one"]
    again = mainstem("consume", topic, *options)
    assert (again.returncode, again.stdout) == (0, "")
    (later,) = json.loads(mainstem("groups", "members", "--json", group).stdout)
    assert [member["instance_id"] for member in later["members"]] == ["the-one"]


def test_a_second_member_of_the_same_instance_id_takes_over(
    broker: Broker, mainstem: Mainstem, topic: str
) -> None:
    group = unique_name("fenced")
    options = ("--group-instance-id", "the-one", "-B")
    with member(broker, topic, group, *options) as first:
        lines_of(first.stdout, 20)
        with member(broker, topic, group, *options) as second:
            rest, said = first.communicate(timeout=60)
            assert (first.returncode, rest) == (1, "")
            message, hint = said.splitlines()[-2:]
            assert message.startswith("mainstem: no longer a member of the group: ")
            assert hint == "  -> give every member an id of its own: --group-instance-id"
            mainstem("produce", topic, "--partition", "0", stdin="for the second\n")
            assert second.stdout is not None
            assert "for the second\n" in iter(second.stdout.readline, "")


def test_why_one_cannot_be_a_member_is_explained() -> None:
    released = KafkaError(
        KafkaError._FATAL, "Broker: The instance ID is still used by another member in the consumer group"
    )
    assert explain(released, "b:1").hint == (
        "end that member first, or give this one another --group-instance-id"
    )
    full = explain(KafkaError(KafkaError.GROUP_MAX_SIZE_REACHED), "b:1")
    assert full.message.startswith("cannot be a member of the group: ")
    assert "group.max.size" in str(full.hint)
    assert explain(KafkaError(KafkaError._TRANSPORT), "b:1").message.startswith("no broker answers at b:1")


def test_a_reader_that_leaves_early_leaves_the_group_too(
    broker: Broker, mainstem: Mainstem, topic: str
) -> None:
    group = unique_name("pipe")
    mainstem("produce", topic, "-q", stdin="".join(f"{number}\n" for number in range(20_000)))
    command = f"{sys.executable} -m mainstem consume {topic} -g {group} -B | head -1; exit ${{PIPESTATUS[0]}}"
    piped = subprocess.run(
        ["bash", "-c", command],
        env=os.environ | {"MAINSTEM_BOOTSTRAP": broker.bootstrap_servers},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (piped.returncode, piped.stderr) == (0, "")
    assert state_of(mainstem, group) == ("Empty", 0)


def test_options_that_do_not_go_together(mainstem: Mainstem, topic: str) -> None:
    cases = {
        ("--group", "g", "--partition", "0"): "a group decides itself where its members read",
        ("--group", "g", "--offset", "3"): "a group decides itself where its members read",
        ("--group", "g", "--from-time", "1h"): "a group decides itself where its members read",
        ("--group-instance-id", "i"): "that is for members of a group",
        ("--group-protocol", "consumer"): "that is for members of a group",
        ("--group", ""): "a group has a name",
    }
    for options, message in cases.items():
        result = mainstem("consume", topic, *options)
        assert result.returncode == 2, options
        assert result.stderr.startswith(f"mainstem: {message}\n  -> "), result.stderr
    absent = mainstem("consume", f"{topic}x", "--group", "g")
    assert absent.stderr.startswith(f"mainstem: there is no topic '{topic}x'\n")
