"""Rebalances are counted and timed, from the disturbance of a group to its rest."""

from itertools import count
from typing import Any
from uuid import UUID

from mainstem.config import BrokerConfig
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.coordinator.group.rebalance_times import RebalanceTimes
from mainstem.coordinator.group.state import Client
from mainstem.protocol.apis.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from tests.coordinator.harness import FakeTopics, Harness

SESSION_MS, INTERVAL_MS = 45_000, 5_000


def test_from_disturbance_to_rest() -> None:
    times = RebalanceTimes()
    assert times.end(100) is times, "nothing was under way"
    times = times.begin(1000)
    assert times == RebalanceTimes(started=1, since_ms=1000)
    assert times.begin(1500) is times, "it is the same one"
    times = times.end(1700)
    assert times == RebalanceTimes(started=1, completed=1, last_ms=700, total_ms=700)
    times = times.begin(2000).end(2300)
    assert times == RebalanceTimes(started=2, completed=2, last_ms=300, total_ms=1000)


class World:
    """A group `g` with members that do what they are told."""

    def __init__(self) -> None:
        ids = count(1)
        topics = FakeTopics(t=4)
        self.harness = Harness(
            lambda: GroupCoordinator(BrokerConfig(), topics, lambda: str(UUID(int=next(ids))), lambda _: {})
        )
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, list[TopicPartitions]] = {}

    def times(self) -> RebalanceTimes:
        times: RebalanceTimes = self.harness.machine.state.groups["g"].rebalances
        return times

    def beat(self, member_id: str, epoch: int | None = None) -> Any:
        is_joining = member_id not in self.epochs
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
            member_epoch=self.epochs.get(member_id, 0) if epoch is None else epoch,
            rebalance_timeout_ms=60_000 if is_joining else -1,
            subscribed_topic_names=["t"] if is_joining else None,
            topic_partitions=[] if is_joining else self.owned[member_id],
        )
        client = Client("client", "/127.0.0.1")
        waiting = self.harness.send(
            lambda machine, token, now_ms: machine.consumer.heartbeat(request, 1, client, token, now_ms)
        )
        answer = waiting.answer
        if getattr(answer, "error_code", 1) == 0:
            self.epochs[member_id] = answer.member_epoch
            if answer.assignment is not None:
                self.owned[member_id] = answer.assignment.topic_partitions
            self.owned.setdefault(member_id, [])
        return answer

    def pass_time(self, ms: int, *alive: str) -> None:
        """The members that are alive report often enough meanwhile."""
        while ms > 0:
            step = min(ms, INTERVAL_MS)
            self.harness.advance(step)
            for member_id in alive:
                self.beat(member_id)
            ms -= step


def test_a_group_of_one_is_at_rest_at_once() -> None:
    world = World()
    world.beat("a")
    assert world.times() == RebalanceTimes(started=1, completed=1)
    world.beat("a", epoch=-1)
    assert world.times() == RebalanceTimes(started=2, completed=2)


def test_a_second_member_disturbs_until_it_has_its_share() -> None:
    world = World()
    world.beat("a")
    before = world.times()
    world.pass_time(10_000, "a")
    assert world.times() == before
    joined_ms = world.harness.now_ms
    world.beat("b")
    assert world.times().since_ms == joined_ms
    world.pass_time(10_000, "a", "b")
    after = world.times()
    assert after.since_ms is None
    assert after.completed == before.completed + 1
    # At its next heartbeat "a" hears what it has to give up, at the one after it has.
    assert after.last_ms == 2 * INTERVAL_MS
    assert after.total_ms == before.total_ms + 2 * INTERVAL_MS


def test_a_member_that_dies_disturbs_when_its_session_ends() -> None:
    world = World()
    world.beat("a")
    world.beat("b")
    world.pass_time(10_000, "a", "b")
    before = world.times()
    heard_ms = world.harness.now_ms
    world.pass_time(SESSION_MS - 1, "a")
    assert world.times() == before
    world.harness.advance(1)
    assert world.times().since_ms == heard_ms + SESSION_MS
    world.beat("a")
    assert world.times().completed == before.completed + 1


def test_what_could_not_be_written_did_not_begin() -> None:
    world = World()
    world.beat("a")
    before = world.times()
    world.harness.appends_fail = True
    world.beat("b")
    assert world.times() == before
