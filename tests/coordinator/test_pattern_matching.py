"""The patterns of a group are matched and written a little at a time, whatever the members ask for."""

from itertools import count
from typing import Any
from uuid import UUID

import pytest

from mainstem.config import BrokerConfig
from mainstem.coordinator.group.consumer.pattern_matching import Matching
from mainstem.coordinator.group.coordinator import GroupCoordinator
from mainstem.coordinator.group.state import Client
from mainstem.protocol.apis.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.coordinator.harness import FakeTopics, Harness

_GROUP = "orders"
# Of a size that RE2 cannot do quickly with names of a's and b's.
_COSTLY = "(a|b)*a(a|b){40,60}x"


class _World:
    """A group whose members have patterns; `run_event` runs one timer, as the shell does."""

    def __init__(self, names: list[str]) -> None:
        ids = count(1)
        self.topics = FakeTopics(**dict.fromkeys(names, 1))
        config = BrokerConfig({"group.consumer.assignment.interval.ms": "0"})
        self.harness = Harness(
            lambda: GroupCoordinator(config, self.topics, lambda: str(UUID(int=next(ids))), lambda _: {})
        )

    @property
    def group(self) -> Any:
        return self.harness.machine.state.groups[_GROUP]

    def join(self, member_id: str, pattern: str) -> None:
        request = ConsumerGroupHeartbeatRequest(
            _GROUP,
            member_id,
            0,
            rebalance_timeout_ms=1000,
            subscribed_topic_regex=pattern,
            topic_partitions=[],
        )
        self._send(request)

    def leave(self, member_id: str) -> None:
        self._send(ConsumerGroupHeartbeatRequest(_GROUP, member_id, -1))

    def beat(self, member_id: str) -> None:
        epoch = self.group.members[member_id].member_epoch
        self._send(ConsumerGroupHeartbeatRequest(_GROUP, member_id, epoch))

    def _send(self, request: ConsumerGroupHeartbeatRequest) -> None:
        answer = self.harness.send(
            lambda machine, token, now_ms: machine.consumer.heartbeat(
                request, 1, Client("client", "/host"), token, now_ms
            )
        ).answer
        assert answer.error_code == 0, answer

    def run_event(self) -> int | None:
        """How many bytes the next one wrote; None when no patterns are being matched."""
        machine = self.harness.machine
        if ("consumer-patterns", _GROUP) not in machine.timers:
            return None
        assert machine.timers.run_next(self.harness.now_ms)
        written = sum(len(key) + len(value or b"") for key, value in machine.effects.records)
        self.harness.settle()
        return written

    def run_events(self) -> list[int]:
        written = []
        while (size := self.run_event()) is not None:
            written.append(size)
        return written


@pytest.mark.parametrize(
    ("pattern", "topics_max"), [(".*", 2000), ("[ab]{0,249}", 20), (f"{_COSTLY}|[ab]*", 10)]
)
def test_a_slice_is_short(pattern: str, topics_max: int) -> None:
    names = [
        f"{number:b}".replace("0", "a").replace("1", "b").rjust(200, "a") for number in range(topics_max * 2)
    ]
    seen: list[str] = []

    def may_see(name: str) -> bool:
        seen.append(name)
        return name.endswith("b")

    matching = Matching([pattern], names, 1, may_see, 0)
    slices = 1
    while not matching.run_slice():
        assert len(seen) <= topics_max
        seen.clear()
        slices += 1
    assert slices > 2
    assert matching.resolved == {pattern: frozenset(name for name in names if name.endswith("b"))}


def test_many_patterns_are_matched_in_many_events_that_end_in_one_epoch() -> None:
    names = [f"{number:b}".replace("0", "a").replace("1", "b").rjust(200, "a") for number in range(50)]
    world = _World(names)
    world.join("m0", "none")
    world.run_events()
    for number in range(1, 5):
        world.join(f"m{number}", f"{_COSTLY}|[ab]*{'b' * number}")
    epoch = world.group.epoch
    world.harness.advance(10_001)
    world.beat("m0")
    written = world.run_events()
    assert len(written) > 20
    assert [size for size in written[:-1] if size] == []
    assert written[-1] > 0
    assert world.group.epoch == epoch + 1
    for number in range(1, 5):
        resolved = world.group.resolved[f"{_COSTLY}|[ab]*{'b' * number}"]
        assert resolved.topics == {name for name in names if name.endswith("b" * number)}


def test_a_pattern_that_nobody_has_any_more_is_not_written() -> None:
    world = _World([f"{'ab' * 100}-{number}" for number in range(50)])
    world.join("m0", "none")
    world.run_events()
    world.join("m1", _COSTLY + ".*")
    world.harness.advance(10_001)
    world.beat("m0")
    assert world.run_event() == 0
    world.leave("m1")
    world.run_events()
    assert world.group.resolved.keys() == {"none"}


def test_no_event_writes_more_than_a_batch_can_have() -> None:
    world = _World([f"{'topic' * 40}-{number}" for number in range(300)])
    world.join("m0", "none")
    world.run_events()
    for number in range(1, 30):
        world.join(f"m{number}", f".{{{number}}}.*")
    world.harness.advance(10_001)
    world.beat("m0")
    written = world.run_events()
    assert sum(written) > 1_500_000
    assert max(written) < 256 * 1024
    assert len(world.group.resolved) == 30


def test_events_that_fail_do_not_keep_others_from_theirs() -> None:
    names = [f"{'topic' * 40}-{number}" for number in range(300)]
    world = _World(names)
    world.join("m0", "none")
    world.run_events()
    for number in range(1, 5):
        world.join(f"m{number}", f".{{{number}}}.*")
    world.harness.advance(10_001)
    world.beat("m0")
    while not len(world.group.resolved) > 1:
        assert world.run_event() is not None
    world.harness.appends_fail = True
    world.run_event()
    world.harness.appends_fail = False
    world.run_events()
    failed = len(world.group.patterns) - len(world.group.resolved)
    assert failed in range(1, 4)
    world.harness.advance(9_000)
    world.beat("m0")
    assert world.run_event() is None
    world.harness.advance(1_001)
    world.beat("m0")
    world.run_events()
    assert all(world.group.resolved[f".{{{number}}}.*"].topics == set(names) for number in range(1, 5))
