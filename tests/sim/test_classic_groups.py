"""Classic groups under a long random history, repeatable by its seed: members crash, stall, rejoin and race,
the broker fails to write and starts again. The rules are in `classic_world.py`.
"""

from typing import Any

import pytest

from mainstem.coordinator.group.classic.group import ClassicGroup
from mainstem.coordinator.group.classic.rebalance import Rebalances
from mainstem.coordinator.group.classic.sync import Syncs
from mainstem.coordinator.group.offsets import Offsets
from tests.sim.classic_administrator import Administrator
from tests.sim.classic_client import SimulatedClient
from tests.sim.classic_world import GROUP, World
from tests.sim.seeds import SEED, Breakage, Violation, assert_found_out, simulate_all, soaked

SEEDS_PER_TEST = 50
TURNS = 120
CALM_TURNS = 150


def simulate(seed: int) -> None:
    world = World(seed)
    clients = [
        SimulatedClient(
            world,
            name=f"c{number}",
            instance_id=f"static{number}" if world.random.random() < 0.3 else None,
            version=world.random.choice((3, 5, 8, 9)),
        )
        for number in range(world.random.randint(1, 5))
    ]
    somebody: list[SimulatedClient | Administrator] = [*clients, Administrator(world)]
    for turn in range(TURNS + CALM_TURNS):
        world.is_calm = turn >= TURNS
        for one in world.random.sample(somebody, len(somebody)):
            one.step()
        world.end_turn()
        group = world.broker.machine.state.groups.get(GROUP)
        if world.is_calm and _is_settled(group, clients):
            break
    else:
        raise Violation(f"not stable: {[(client.name, client.phase) for client in clients]}")
    world.rules.stable({client.name: client.owned for client in clients})
    assert group.rebalances.started == group.rebalances.completed


def _is_settled(group: ClassicGroup | None, clients: list[SimulatedClient]) -> bool:
    """The processes that died are forgotten, those that live take part in one and the same generation."""
    return (
        group is not None
        and group.state_name() == "Stable"
        and set(group.members) == {client.member_id for client in clients}
        and all(client.phase == "in" and client.generation == group.generation for client in clients)
    )


@pytest.mark.parametrize("first", soaked(range(SEED * 1000, SEED * 1000 + 200, SEEDS_PER_TEST), 1))
def test_the_rules_hold_whatever_happens(first: int) -> None:
    simulate_all(simulate, range(first, first + SEEDS_PER_TEST))


# ---- each rule is broken on purpose


def _same_generation(self: ClassicGroup, now_ms: int) -> None:
    generation = self.generation
    _next_generation(self, now_ms)
    self.generation = max(1, generation)


def _forgetful_assignment(self: Syncs, group: ClassicGroup, request: Any, now_ms: int) -> None:
    request.assignments = request.assignments[1:]
    _assign(self, group, request, now_ms)


def _nothing(*arguments: Any) -> None:
    pass


def _anything_goes(self: ClassicGroup, *arguments: Any) -> None:
    pass


def _forget_nothing_but_the_group(self: Rebalances, group: ClassicGroup) -> None:
    self._state.groups.pop(group.group_id, None)


def _drop_syncs(self: Rebalances, group: ClassicGroup, now_ms: int) -> None:
    for member in group.members.values():
        member.sync_token = None


_next_generation = ClassicGroup.next_generation
_assign = Syncs._assign


@pytest.mark.parametrize(
    "breakage",
    [
        Breakage(ClassicGroup, "next_generation", _same_generation, "owned twice"),
        Breakage(Syncs, "_assign", _forgetful_assignment, "not covered"),
        Breakage(ClassicGroup, "check_offset_commit", _anything_goes, "fenced|moved back"),
        Breakage(Offsets, "replay", _nothing, "lost|moved back"),
        Breakage(Offsets, "_undo_commit", _nothing, "lost"),
        Breakage(Rebalances, "expect", _nothing, "unknown"),
        Breakage(Rebalances, "_refuse_syncs", _drop_syncs, "forgotten"),
        Breakage(Rebalances, "forget", _forget_nothing_but_the_group, "not written|owned twice"),
    ],
    ids=lambda breakage: breakage.name,
)
def test_a_broken_coordinator_is_found_out(monkeypatch: pytest.MonkeyPatch, breakage: Breakage) -> None:
    assert_found_out(monkeypatch, breakage, simulate, 50)
