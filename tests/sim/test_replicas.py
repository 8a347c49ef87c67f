"""Three replicas in random histories: what was acknowledged is never lost, what is committed is the same on
all, nothing below it is cut off, and after a calm all are equal and in sync. Each rule is held against a part
that is broken on purpose.
"""

from collections.abc import Callable
from typing import Any

import pytest

from mainstem.broker.logs import partition as partition_module
from mainstem.broker.logs.partition import Partition
from mainstem.replication.leader_state import LeaderState
from mainstem.replication.progress import FollowerProgress
from tests.sim import replica_machine
from tests.sim.replica_world import World
from tests.sim.seeds import SEED, Breakage, assert_found_out, simulate_all, soaked

_PER_TEST = 25


def simulate(seed: int, *, steps: int = 600, unclean: bool = False) -> World:
    world = World(seed, unclean=unclean)
    world.run(steps)
    world.settle()
    return world


@pytest.mark.parametrize("block", soaked(range(40), 2))
def test_the_rules_of_replication_hold_in_any_history(block: int) -> None:
    first = SEED * 10_000 + block * _PER_TEST
    simulate_all(simulate, range(first, first + _PER_TEST))


@pytest.mark.parametrize("block", soaked(range(20), 1))
def test_after_unclean_elections_the_replicas_become_equal_again(block: int) -> None:
    first = SEED * 10_000 + block * _PER_TEST
    simulate_all(lambda seed: simulate(seed, unclean=True), range(first, first + _PER_TEST))


def test_the_histories_are_eventful() -> None:
    worlds = [simulate(seed) for seed in range(10)]
    assert sum(len(world.acknowledged) for world in worlds) > 100
    assert sum(world.controller.part.leader_epoch for world in worlds) > 20
    assert any(simulate(seed, unclean=True).controller.unclean_elections for seed in range(10))


# ---- breakages

_count = LeaderState._count


def _only_the_leader_counts(self: LeaderState[Any], now_ms: int) -> int:
    return self.local_end_offset


def _proposed_replicas_do_not_count(self: LeaderState[Any]) -> None:
    proposal, self.proposal = self.proposal, None
    _count(self)
    self.proposal = proposal


def _few_are_enough(self: LeaderState[Any]) -> None:
    _count(self)
    self._is_under_min_isr = False


def _cut_to_high_watermark(self: Partition) -> None:
    self._cut_to(self.high_watermark)


def _nothing(self: object, partition: Partition, work: object) -> None:
    pass


def _never_cut(log: Any, epoch: int, end_offset: int, high_watermark: int) -> int:
    return int(log.log_end_offset)


def _the_leaders_word_is_enough(own: int, leaders: int, log_end_offset: int) -> int:
    return max(own, leaders)


def _has_more_than_it_says(
    self: FollowerProgress, offset: int, start: int, epoch: int, leader_end: int, now_ms: int
) -> None:
    self.end_offset, self.log_start_offset, self.broker_epoch = leader_end, start, epoch
    self.caught_up_ms = now_ms


BREAKAGES: dict[str, tuple[object, str, Callable[..., Any], str]] = {
    "the high watermark looks at the leader alone": (
        LeaderState, "committed_end_offset", _only_the_leader_counts, "lost|differ|below its high watermark",
    ),
    "proposed replicas do not count": (
        LeaderState, "_count", _proposed_replicas_do_not_count, "lost|differ|below its high watermark",
    ),
    "fewer than min.insync.replicas commit": (
        LeaderState, "_count", _few_are_enough, "lost|differ|below its high watermark",
    ),
    "a follower is cut to its high watermark": (
        Partition, "begin_to_follow", _cut_to_high_watermark, "lost|differ|below its high watermark",
    ),
    "a cut is not synced": (
        replica_machine.Machine, "sync_cut", _nothing, "lost|differ|below its high watermark|does not have",
    ),
    "a follower is not cut": (
        partition_module, "offset_to_cut_to", _never_cut, "differ|calm|does not have",
    ),
    "a follower believes the leader's high watermark": (
        partition_module, "follower_high_watermark", _the_leaders_word_is_enough, "behind the end",
    ),
    "a fetch counts as if all it brings were written": (
        FollowerProgress, "fetched", _has_more_than_it_says, "lost|differ|below its high watermark",
    ),
}  # fmt: skip


# Seeds before these do not find it out, and only take time.
FIRST_SEEDS = {
    "a cut is not synced": 90,
    "proposed replicas do not count": 1060,
    "a follower is cut to its high watermark": 270,
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_what_is_broken_on_purpose_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = FIRST_SEEDS.get(name, 0)
    assert_found_out(monkeypatch, Breakage(*BREAKAGES[name]), lambda seed: simulate(first + seed), 20)
