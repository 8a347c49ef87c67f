"""The members and the generator that load groups do as clients do, in both protocols. No timing."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient, NewTopic

from bench.errors import BenchError
from bench.members.classic import ClassicGroup
from bench.members.consumer import ConsumerGroup
from bench.members.coordination import commit_once, delete_groups, set_group_config, wait_for_coordinators
from bench.members.driver import Driver, ask
from bench.tools import compile_command
from mainstem.protocol.apis.k16_list_groups import ListGroupsRequest
from mainstem.testing import Broker
from tests.support.target import unique_name

_TIMEOUT_S = 60.0
_MEMBERS = 4
_PARTITIONS = 10
_SETTINGS = {"group.consumer.heartbeat.interval.ms": 50, "group.consumer.min.heartbeat.interval.ms": 50}

Group = ClassicGroup | ConsumerGroup


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config=_SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def port(broker: Broker) -> int:
    return int(broker.bootstrap_servers.rpartition(":")[2])


@pytest.fixture
def topic(broker: Broker) -> str:
    name = unique_name()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(name, _PARTITIONS, 1)])[name].result(timeout=30)
    return name


def _classic(driver: Driver, group_id: str, topic: str) -> ClassicGroup:
    return ClassicGroup(driver, group_id, topic, _PARTITIONS, 0.02, _MEMBERS)


def _consumer(driver: Driver, group_id: str, topic: str) -> ConsumerGroup:
    return ConsumerGroup(driver, group_id, topic, _PARTITIONS, _MEMBERS)


def _states(port: int) -> dict[str, tuple[str, str]]:
    groups = ask(port, ListGroupsRequest(), 5).groups
    return {group.group_id: (group.group_type, group.group_state) for group in groups}


@pytest.mark.parametrize(("new_group", "kind"), [(_classic, "classic"), (_consumer, "consumer")])
def test_members_share_the_partitions_again_after_one_has_left(
    port: int, topic: str, new_group: Callable[[Driver, str, str], Group], kind: str
) -> None:
    group_id = unique_name("group")
    wait_for_coordinators(port, [group_id])
    set_group_config(port, group_id, "consumer.assignment.interval.ms", "0")
    with Driver(port) as driver:
        group = new_group(driver, group_id, topic)
        group.join()
        driver.run_until(lambda: group.is_stable, _TIMEOUT_S, "joining")
        group.check()
        assert sorted(len(member.owned) for member in group.members) == [2, 2, 3, 3]
        group.pause()
        driver.run_until(lambda: group.is_quiet, _TIMEOUT_S, "the last heartbeats")
        assert _states(port)[group_id] == (kind, "Stable")
        group.leave_one()
        driver.run_until(lambda: group.is_stable, _TIMEOUT_S, "leaving")
        group.check()
        assert sorted(len(member.owned) for member in group.members) == [3, 3, 4]
        group.pause()
        driver.run_until(lambda: group.is_quiet, _TIMEOUT_S, "the last heartbeats")
        group.leave_all()
        driver.run_until(lambda: group.is_gone, _TIMEOUT_S, "leaving")
        assert _states(port)[group_id] == (kind, "Empty")
    delete_groups(port, [group_id])
    assert group_id not in _states(port)


def test_a_partition_that_two_members_own_is_found(port: int) -> None:
    with Driver(port) as driver:
        group = _classic(driver, "never-joined", "any")
        for number, member in enumerate(group.members):
            member.owned = (number,)
        group.members[0].owned = (1,)
        with pytest.raises(BenchError, match="own 4 partitions"):
            group.check()


def test_waiting_without_end_is_an_error(port: int) -> None:
    with Driver(port) as driver, pytest.raises(BenchError, match="nothing took longer"):
        driver.run_until(lambda: False, 0.01, "nothing")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_the_generator_commits_what_it_says(broker: Broker, port: int, topic: str, tmp_path: Path) -> None:
    program = tmp_path / "commits"
    subprocess.run(compile_command("commits", program), check=True, timeout=60)
    name = unique_name("group")
    groups = [f"{name}-0", f"{name}-1"]
    wait_for_coordinators(port, groups)
    for group in groups:
        commit_once(port, group, topic)
    where = ["--port", str(port), "--topic", topic, "--group", name, "--groups", "2"]
    load = ["--connections", "6", "--partitions", "3", "--count", "600", "--seconds", "60"]
    done = subprocess.run([program, *where, *load], capture_output=True, text=True, timeout=90, check=True)
    assert json.loads(done.stdout)["requests"] == 600
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    committed: list[int] = []
    for group in groups:
        asked = [ConsumerGroupTopicPartitions(group)]
        offsets = admin.list_consumer_group_offsets(asked)[group].result(timeout=30).topic_partitions
        assert [part.partition for part in offsets] == [0, 1, 2]
        committed += [part.offset for part in offsets]
    # Each of the six connections counted from 0; together they sent 600.
    assert sum(offset + 1 for offset in committed) == 600
