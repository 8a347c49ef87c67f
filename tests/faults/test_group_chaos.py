"""Groups under a steady load while members are killed and stopped and the broker is killed.

Every message comes at least once to every group, in order, and no commit is lost or goes back.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import Producer

from mainstem.testing import Broker
from mainstem.wire import Cluster, from_kafka_options
from tests.faults.group_history import CommitWatch, Lines, check_delivered, check_order, read_lines
from tests.faults.transaction_brokers import Killable
from tests.support.group_views import until
from tests.support.target import Target

PARTITIONS = 6
MESSAGES_PER_SECOND = 300
TOPIC = "load"
# A dead member is missed after a second or two, not after most of a minute.
SETTINGS = {
    "group.min.session.timeout.ms": 1000,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.session.timeout.ms": 2000,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 300,
}
CLASSIC = {"session.timeout.ms": 2000, "heartbeat.interval.ms": 300}
# Every way to be a group has one. `group.instance.id` is filled in for each member.
GROUPS: dict[str, dict[str, Any]] = {
    "range": {**CLASSIC, "partition.assignment.strategy": "range"},
    "roundrobin": {**CLASSIC, "partition.assignment.strategy": "roundrobin"},
    "cooperative": {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"},
    "static": {**CLASSIC, "partition.assignment.strategy": "range", "group.instance.id": ""},
    "consumer": {"group.protocol": "consumer"},
}
_ROOT = Path(__file__).parents[2]


class Load:
    """A producer at a steady rate; the value of each message is its offset."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.ends = dict.fromkeys(range(PARTITIONS), 0)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 2,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.max.ms": 100,
                "message.timeout.ms": 60_000,
            }
        )
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(1 / MESSAGES_PER_SECOND):
            partition = number % PARTITIONS
            self._producer.produce(TOPIC, b"%d" % self.ends[partition], partition=partition)
            self.ends[partition] += 1
            number += 1
            self._producer.poll(0)

    def end(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(60) == 0


@dataclass
class Member:
    """One process; `history` is that of this life."""

    name: str
    pid: int
    history: Path


@dataclass
class Group:
    """The members of now, and what all that ever were have written down."""

    name: str
    members: list[Member] = field(default_factory=list)
    histories: list[Path] = field(default_factory=list)
    watch: CommitWatch = field(default_factory=CommitWatch)

    def lines(self) -> list[Lines]:
        return [read_lines(path) for path in self.histories]

    def look(self, target: Target) -> dict[int, int]:
        """Check the committed offsets, and return them."""
        before = self.lines()
        committed = _committed(target, self.name)
        self.watch.look(committed, before)
        return committed


def _committed(target: Target, group: str) -> dict[int, int]:
    """The committed offsets, when the coordinator is there and ready to tell."""
    options = {"bootstrap.servers": target.bootstrap_servers, "request.timeout.ms": "5000"}
    with Cluster(from_kafka_options(options)) as cluster:
        found = cluster.offset_fetch(group, require_stable=False)
    return {partition: committed.offset for (_, partition), committed in found.items()}


class Crowd:
    """All groups, and the process that their members are forked from."""

    def __init__(self, target: Target, folder: Path, members_per_group: int) -> None:
        self.target = target
        self._folder = folder
        self._nursery = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.group_member"],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.groups = [Group(name) for name in GROUPS]
        for group in self.groups:
            for number in range(members_per_group):
                self.start(group, f"{group.name}-{number}")

    def start(self, group: Group, name: str) -> None:
        history = self._folder / f"{name}.{len(group.histories)}"
        settings = {
            "bootstrap.servers": self.target.bootstrap_servers,
            "group.id": group.name,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "reconnect.backoff.max.ms": 100,
            "fetch.wait.max.ms": 100,
            **GROUPS[group.name],
        }
        if "group.instance.id" in settings:
            settings["group.instance.id"] = name
        description = {"topic": TOPIC, "history": str(history), "settings": settings}
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.write(json.dumps(description).encode() + b"\n")
        self._nursery.stdin.flush()
        pid = int(self._nursery.stdout.readline())
        group.members.append(Member(name, pid, history))
        group.histories.append(history)

    def end(self) -> None:
        """Everybody leaves in order."""
        members = [member for group in self.groups for member in group.members]
        for member in members:
            os.kill(member.pid, signal.SIGTERM)
        until(lambda: not any(map(_is_alive, members)), "the members to end")

    def close(self) -> None:
        """Whatever happened before, nobody stays behind: members end when the nursery has ended."""
        for group in self.groups:
            for member in group.members:
                with suppress(ProcessLookupError):
                    os.kill(member.pid, signal.SIGKILL)
        self._nursery.kill()
        self._nursery.communicate()


def _is_alive(member: Member) -> bool:
    try:
        os.kill(member.pid, 0)
    except ProcessLookupError:
        return False
    return True


class Chaos:
    """Does harm, and waits each time until every group has got over it."""

    def __init__(self, broker: Killable, load: Load, crowd: Crowd, seed: int) -> None:
        self._broker = broker
        self._load = load
        self._crowd = crowd
        self._random = Random(seed)
        self.faults: dict[str, Callable[[], None]] = {
            "kill a member": self._kill_member,
            "stop a member": self._stop_member,
            "kill the broker": self._kill_broker,
        }

    def run(self, count: int) -> None:
        self.recover()
        kinds = list(self.faults)
        for number in range(count):
            # Each kind comes in every round of three, in an order of chance.
            if number % len(kinds) == 0:
                self._random.shuffle(kinds)
            self.faults[kinds[number % len(kinds)]]()
            self.recover()

    def recover(self, further: int = 10) -> None:
        """Every group has read and committed what was written up to now, and some more messages."""
        goal = {partition: end + further for partition, end in self._load.ends.items()}

        def reached(group: Group) -> bool:
            committed = group.look(self._crowd.target)
            return all(committed.get(partition, -1) >= end for partition, end in goal.items())

        for group in self._crowd.groups:
            until(lambda: reached(group), f"group {group.name} to reach {goal}")  # noqa: B023

    def _pick(self) -> tuple[Group, Member]:
        group = self._random.choice(self._crowd.groups)
        return group, self._random.choice(group.members)

    def _kill_member(self) -> None:
        group, member = self._pick()
        os.kill(member.pid, signal.SIGKILL)
        group.members.remove(member)
        self._crowd.start(group, member.name)

    def _stop_member(self) -> None:
        _, member = self._pick()
        os.kill(member.pid, signal.SIGSTOP)
        try:
            self.recover()
        finally:
            os.kill(member.pid, signal.SIGCONT)

    def _kill_broker(self) -> None:
        self._broker.kill()
        self._broker.start()


@contextmanager
def crowd_of(target: Target, folder: Path, members_per_group: int) -> Iterator[Crowd]:
    crowd = Crowd(target, folder, members_per_group)
    try:
        yield crowd
    finally:
        crowd.close()


def survive(
    broker: Killable, target: Target, folder: Path, members_per_group: int, faults: int, seed: int
) -> tuple[int, int]:
    """Returns how many messages were written, and how many came, over all groups."""
    with crowd_of(target, folder, members_per_group) as crowd:
        load = Load(broker.bootstrap_servers)
        chaos = Chaos(broker, load, crowd, seed)
        try:
            chaos.run(faults)
        finally:
            load.end()
        chaos.recover(further=0)
        crowd.end()
        came = 0
        for group in crowd.groups:
            histories = group.lines()
            for history in histories:
                check_order(history)
            came += check_delivered(histories, load.ends)
            assert group.look(target) == load.ends
    assert "Traceback" not in broker.log
    return sum(load.ends.values()), came


def _survive_on_one(folder: Path, members_per_group: int, faults: int, seed: int) -> tuple[int, int]:
    with Broker(SETTINGS) as broker:
        target = Target("mainstem", broker.bootstrap_servers, broker.data_dir)
        target.create_topic(TOPIC, PARTITIONS)
        return survive(broker, target, folder, members_per_group, faults, seed)


@pytest.mark.parametrize("seed", [1])
def test_groups_survive_a_fault_of_each_kind(tmp_path: Path, seed: int) -> None:
    written, came = _survive_on_one(tmp_path, members_per_group=2, faults=3, seed=seed)
    assert came == len(GROUPS) * written


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_twenty_consumers_in_five_groups_survive_fifty_faults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = time.monotonic()
    written, came = _survive_on_one(tmp_path, members_per_group=4, faults=50, seed=50)
    assert came == len(GROUPS) * written
    with capsys.disabled():
        seconds = time.monotonic() - started
        print(f"\n50 faults in {seconds:.0f} s: {written} messages came to each of {len(GROUPS)} groups")
