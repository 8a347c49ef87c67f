"""A consumer group under a long random history, repeatable by its seed: members crash, stall, leave, come
back and race, answers get lost, topics change, appends fail, and the coordinator restarts from its log.

At no moment may two members that the group knows own one partition; a member that the group does not know may
not commit; a restart gives back what was there; and when the storm is over every partition has one owner.
"""

from collections import Counter
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any
from uuid import UUID

import pytest

from mainstem.config import BrokerConfig
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.protocol.errors import KafkaError
from tests.coordinator.harness import FakeTopics, Harness
from tests.sim.group_clients import GROUP, ClassicClient, ConsumerClient, Network
from tests.sim.seeds import SEED, soaked

STEPS = 500
SEEDS = 12
MEMBERS_MAX = 7
QUIET_ROUNDS_MAX = 60

AnyClient = ConsumerClient | ClassicClient


class Simulation:
    """One group, its clients, and the rules."""

    def __init__(self, seed: int, with_classic_members: bool) -> None:
        self.random = random = Random(seed)
        self.with_classic_members = with_classic_members
        self.topics = FakeTopics(t0=random.randint(1, 8), t1=random.randint(1, 8))
        ids = count(1)
        config = BrokerConfig({"group.initial.rebalance.delay.ms": "0"})
        self.harness = Harness(
            lambda: GroupCoordinator(config, self.topics, lambda: str(UUID(int=next(ids))), lambda _: {})
        )
        self.network = Network(random)
        self.names = count(1)
        self.clients: list[AnyClient] = []
        self.stalled: set[AnyClient] = set()
        # Those who do not know that they are out: they may still believe that they own something.
        self.gone: list[AnyClient] = []

    # ---- what can happen

    def join(self) -> None:
        if len(self.clients) >= MEMBERS_MAX:
            return
        name = f"m{next(self.names)}"
        if self.with_classic_members and self.random.random() < 0.5:
            topic = self.random.choice(("t0", "t1"))
            self.clients.append(ClassicClient(self.harness, self.network, name, topic))
            return
        names = self.random.choice((["t0"], ["t0", "t1"], ["t1"]))
        subscription: dict[str, Any] = {"names": names}
        if self.random.random() < 0.2:
            subscription = {"regex": "t.*"}
        taken = {client.instance_id for client in self.clients if isinstance(client, ConsumerClient)}
        instances = [None, *(name for name in ("i1", "i2") if name not in taken)]
        subscription["instance_id"] = self.random.choice(instances)
        self.clients.append(ConsumerClient(self.harness, self.network, name, **subscription))

    def step(self) -> None:
        for client in self.random.sample(self.clients, len(self.clients)):
            if client not in self.stalled and self.random.random() < 0.8:
                client.step()
                self.check()

    def fail_an_append(self) -> None:
        self.harness.appends_fail = True
        self.step()
        self.harness.appends_fail = False

    def stall(self) -> None:
        if self.clients:
            self.stalled.add(self.random.choice(self.clients))

    def go_on(self) -> None:
        self.stalled.clear()

    def crash(self) -> None:
        """It says nothing any more, and is replaced by a new one later."""
        if self.clients:
            client = self.random.choice(self.clients)
            self.clients.remove(client)
            self.gone.append(client)

    def leave(self) -> None:
        if self.clients:
            client = self.random.choice(self.clients)
            self.clients.remove(client)
            client.leave(self.random.choice((-1, -2)))

    def wait(self) -> None:
        self.harness.advance(self.random.choice((10, 500, 2_000, 12_000)))

    def wait_long(self) -> None:
        self.harness.advance(50_000)

    def grow_a_topic(self) -> None:
        name = self.random.choice(list(self.topics.names()))
        info = self.topics.by_name(name)
        assert info is not None
        if info.partition_count < 16:
            self.topics.create(name, info.partition_count + self.random.randint(1, 3))
            self._topics_changed()

    def change_topics(self) -> None:
        if self.topics.by_name("t2") is None:
            self.topics.create("t2", self.random.randint(1, 4))
        else:
            self.topics.delete("t2")
        self._topics_changed()

    def _topics_changed(self) -> None:
        self.harness.machine.topics_changed(self.harness.now_ms)
        self.harness.settle()

    def restart(self) -> None:
        """Whoever waits in a classic group gets no answer; what the log holds is there again."""
        before = _snapshot(self.harness.machine)
        if self.random.random() < 0.5:
            self.compact()
        self.harness.restart()
        assert _snapshot(self.harness.machine) == before
        for client in self.clients:
            if isinstance(client, ClassicClient):
                client.restarted()

    def compact(self) -> None:
        """Of each key the newest record stays, in its place; what was deleted is gone, sooner or later."""
        log = self.harness.log
        newest = {key: place for place, (key, _) in enumerate(log)}
        keeps_deletions = self.random.random() < 0.5
        self.harness.log = [
            (key, value)
            for place, (key, value) in enumerate(log)
            if newest[key] == place and (value is not None or keeps_deletions)
        ]

    # ---- the rules

    def check(self) -> None:
        group = self.harness.machine.state.groups.get(GROUP)
        members = group.members if group is not None else {}
        owners: Counter[tuple[bytes, int]] = Counter()
        for client in self.clients + self.gone:
            if client.member_id in members:
                owners.update(client.owned)
            elif group is not None and members and client.member_id:
                with pytest.raises(KafkaError):
                    group.check_offset_commit(client.member_id, None, client.epoch, 9, False)
        twice = [partition for partition, number in owners.items() if number > 1]
        assert not twice, f"{twice} have two owners: {[client.describe() for client in self.clients]}"

    def check_quiet(self) -> None:
        """Without further trouble the group comes to rest, and every partition has its owner."""
        self.stalled.clear()
        self.network.is_bad = False
        if not self.clients:
            self.join()
        for _ in range(QUIET_ROUNDS_MAX):
            self.harness.advance(5_000)
            for client in self.clients:
                client.step()
                self.check()
        group = self.harness.machine.state.groups[GROUP]
        assert group.state_name() == "Stable"
        assert set(group.members) == {client.member_id for client in self.clients}
        owned = Counter(partition for client in self.clients for partition in client.owned)
        wanted: Counter[tuple[bytes, int]] = Counter()
        for name in self.topics.names():
            info = self.topics.by_name(name)
            if info is not None and group.is_subscribed_to(name):
                wanted.update((info.topic_id, partition) for partition in range(info.partition_count))
        assert owned == wanted


def _snapshot(machine: Any) -> Any:
    group = machine.state.groups.get(GROUP)
    if group is None:
        return None
    if group.kind == "classic":
        return "classic"
    return (
        group.epoch,
        group.metadata_hash,
        group.assignment_epoch,
        group.assignment_timestamp_ms,
        group.members,
        group.targets,
        group.resolved,
        group.static_members,
        group.topic_names,
        group.pattern_topics,
        group.classic_protocols,
        {
            (topic_id, partition): member_id
            for topic_id, owners in group._owners.items()
            for partition, member_id in owners.items()
        },
    )


def _weights(simulation: Simulation) -> dict[Callable[[], None], int]:
    return {
        simulation.step: 40,
        simulation.wait: 25,
        simulation.join: 12,
        simulation.stall: 3,
        simulation.go_on: 3,
        simulation.crash: 2,
        simulation.leave: 4,
        simulation.wait_long: 1,
        simulation.grow_a_topic: 1,
        simulation.change_topics: 2,
        simulation.fail_an_append: 4,
        simulation.restart: 3,
    }


@pytest.mark.parametrize("with_classic_members", [False, True], ids=["consumer", "both"])
@pytest.mark.parametrize("seed", soaked(range(SEED, SEED + SEEDS), 4))
def test_no_partition_ever_has_two_owners(seed: int, with_classic_members: bool) -> None:
    simulation = Simulation(seed, with_classic_members)
    weights = _weights(simulation)
    for _ in range(STEPS):
        (event,) = simulation.random.choices(list(weights), list(weights.values()))
        event()
        simulation.check()
    simulation.check_quiet()
