"""Offsets in transactions under a long random history, repeatable by its seed. The rules are in
`txn_offsets_world.py`.
"""

import pytest

from mainstem.coordinator.group import pending_offsets
from mainstem.coordinator.group.offset_cleanup import OffsetCleanup
from mainstem.coordinator.group.offset_replay import OffsetReplay
from mainstem.coordinator.group.offset_store import CommittedOffset
from mainstem.coordinator.group.pending_offsets import PendingChange, PendingOffsets, Place, Positions
from tests.sim.seeds import SEED, Breakage, assert_found_out, simulate_all, soaked
from tests.sim.txn_offsets_world import SimulatedWorld

SEEDS_PER_TEST = 25
STEPS = 60


def simulate(seed: int) -> None:
    world = SimulatedWorld(seed)
    for _ in range(STEPS):
        world.step()
        world.check()
    world.check_restart()


@pytest.mark.parametrize("first", soaked(range(SEED * 1000, SEED * 1000 + 100, SEEDS_PER_TEST), 1))
def test_the_rules_hold_whatever_happens(first: int) -> None:
    simulate_all(simulate, range(first, first + SEEDS_PER_TEST))


# ---- each rule is broken on purpose


def _leave(self: PendingOffsets, place: Place) -> PendingChange:
    return place, self.at(place)


def _forget_nothing(self: PendingOffsets, changes: list[PendingChange]) -> None:
    pass


def _overtake_nobody(positions: Positions, producer_id: int, overtakes: bool) -> Positions:
    return _without(positions, producer_id, False)


def _commit_either_way(
    self: PendingOffsets, producer_id: int, commit: bool
) -> list[tuple[Place, CommittedOffset]]:
    return _end(self, producer_id, True)


def _pass_over(self: OffsetReplay, producer_id: int, key: bytes, value: bytes | None) -> None:
    pass


def _count_at_once(self: OffsetReplay, producer_id: int, key: bytes, value: bytes | None) -> None:
    self.replay(key, value)


def _only_committed(self: OffsetCleanup, group_id: str, topic: str) -> bool:
    pending, self._pending = self._pending, PendingOffsets()
    try:
        return _delete_others(self, group_id, topic)
    finally:
        self._pending = pending


_end = PendingOffsets.end
_without = pending_offsets._without
_delete_others = OffsetCleanup._delete_others


@pytest.mark.parametrize(
    "breakage",
    [
        Breakage(PendingOffsets, "overtake", _leave, "other offsets"),
        Breakage(PendingOffsets, "clear", _leave, "other"),
        Breakage(PendingOffsets, "restore", _forget_nothing, "other"),
        Breakage(PendingOffsets, "end", _commit_either_way, "other offsets"),
        Breakage(pending_offsets, "_without", _overtake_nobody, "other offsets"),
        Breakage(OffsetReplay, "replay_transactional", _pass_over, "other"),
        Breakage(OffsetReplay, "replay_transactional", _count_at_once, "other"),
        Breakage(OffsetCleanup, "_delete_others", _only_committed, "other"),
    ],
    ids=lambda breakage: breakage.name,
)
def test_a_broken_coordinator_is_found_out(monkeypatch: pytest.MonkeyPatch, breakage: Breakage) -> None:
    assert_found_out(monkeypatch, breakage, simulate, 100)
