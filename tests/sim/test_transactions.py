"""Transactions under a long random history, repeatable by its seed: producers crash, stall, retry and fence
each other, requests and markers come late, the broker fails to write and is killed. The rules are in
`transaction_world.py`.
"""

from typing import Any

import pytest
from msgspec import structs

from mainstem.coordinator.transaction import coordinator, initialising
from mainstem.coordinator.transaction.completion import Completion
from mainstem.coordinator.transaction.metadata import State, TransactionMetadata
from mainstem.coordinator.transaction.records import decode_value
from mainstem.coordinator.transaction.state import CoordinatorState
from mainstem.coordinator.transaction.time_limits import TimeLimits
from mainstem.protocol.errors import ErrorCode
from tests.sim.seeds import SEED, Breakage, Violation, assert_found_out, simulate_all, soaked
from tests.sim.transaction_producer import SimulatedProducer
from tests.sim.transaction_world import TRANSACTIONAL_IDS, World

SEEDS_PER_TEST = 50
TURNS = 150
CALM_TURNS = 150


def simulate(seed: int) -> World:
    world = World(seed)
    producers = [
        SimulatedProducer(world, f"p{number}", transactional_id, world.random.random() < 0.7)
        for number, transactional_id in enumerate(TRANSACTIONAL_IDS * world.random.randint(1, 3))
    ]
    for turn in range(TURNS + CALM_TURNS):
        world.is_calm = turn >= TURNS
        for producer in world.random.sample(producers, len(producers)):
            producer.step()
        world.end_turn()
        world.judge()
        if turn > TURNS + CALM_TURNS // 2 and world.is_settled:
            return world
    raise Violation(f"hanging: {world.broker.machine.state.transactions}")


@pytest.mark.parametrize("first", soaked(range(SEED * 1000, SEED * 1000 + 200, SEEDS_PER_TEST), 1))
def test_a_transaction_is_committed_or_aborted_whole_whatever_happens(first: int) -> None:
    simulate_all(simulate, range(first, first + SEEDS_PER_TEST))


def test_the_histories_are_worth_their_time() -> None:
    """Commits, aborts and exhausted epochs come up in them."""
    states: set[State] = set()
    rotations = 0
    for seed in range(10):
        world = simulate(seed)
        for _, value in world.broker.log:
            assert value is not None
            known = decode_value(value)
            states.add(known.state)
            rotations += known.next_producer_id != -1
    assert states == set(State) - {State.DEAD, State.PREPARE_EPOCH_FENCE}
    assert rotations > 3


# ---- each rule is broken on purpose


def _without_undo(self: CoordinatorState, transactional_id: str, metadata: Any) -> None:
    undo = list(self.effects.undo)
    _write(self, transactional_id, metadata)
    self.effects.undo[:] = undo


def _forget_one(self: CoordinatorState, partitions: Any) -> Any:
    return frozenset(sorted(_existing(self, partitions))[1:])


def _complete_at_the_first_marker(self: Completion, *arguments: Any) -> None:
    transactional_id, now_ms = arguments[0].transactional_id, arguments[-1]
    metadata = self._state.transactions.get(transactional_id)
    if metadata is not None and metadata.is_ending:
        self._complete(transactional_id, now_ms)


def _ask_before_it_is_written(self: Completion, transactional_id: str) -> bool:
    effects = self._state.effects
    asked = _ask_for_markers(self, transactional_id)
    while effects.replies and effects.replies[-1][0] is self._state.markers:
        token, due = effects.replies.pop()
        token.reply(due)
    return asked


def _abort_after_restart(self: Completion, now_ms: int) -> None:
    for transactional_id, metadata in self._state.transactions.items():
        if metadata.state is State.PREPARE_COMMIT:
            aborting = structs.replace(metadata, state=State.PREPARE_ABORT)
            self._state.transactions[transactional_id] = aborting
    _loaded(self, now_ms)


def _same_epoch(self: TransactionMetadata, commit: bool, client_version: int, *others: Any) -> Any:
    prepared = _prepared(self, commit, client_version, *others)
    return structs.replace(prepared, producer_epoch=self.producer_epoch)


def _end_whatever_comes(metadata: TransactionMetadata, *arguments: Any) -> ErrorCode | None:
    if metadata.state is State.ONGOING:
        return None
    return ErrorCode.CONCURRENT_TRANSACTIONS if metadata.is_ending else ErrorCode.NONE


def _no_rotation(*arguments: Any) -> bool:
    return False


def _same_identity(metadata: TransactionMetadata, identity: Any, timeout_ms: int, now_ms: int) -> Any:
    epoch = max(0, metadata.producer_epoch)
    return metadata.initialised(metadata.producer_id, epoch, -1, timeout_ms, now_ms)


def _no_error(*arguments: Any) -> ErrorCode:
    return ErrorCode.NONE


def _nothing(*arguments: Any) -> None:
    pass


_write = CoordinatorState.write
_existing = CoordinatorState.existing
_ask_for_markers = Completion._ask_for_markers
_loaded = Completion.loaded
_prepared = TransactionMetadata.prepared


@pytest.mark.parametrize(
    "breakage",
    [
        Breakage(CoordinatorState, "write", _without_undo, "not written"),
        Breakage(CoordinatorState, "existing", _forget_one, "hanging|mixed"),
        Breakage(Completion, "markers_written", _complete_at_the_first_marker, "hanging|mixed"),
        Breakage(
            Completion, "_ask_for_markers", _ask_before_it_is_written, "outdated|torn|told wrongly|late"
        ),
        Breakage(Completion, "loaded", _abort_after_restart, "not written|torn|told wrongly"),
        Breakage(Completion, "loaded", _nothing, "hanging"),
        Breakage(Completion, "_complete_at", _nothing, "hanging"),
        Breakage(TransactionMetadata, "prepared", _same_epoch, "hanging|late|mixed"),
        Breakage(coordinator, "answer_to_end", _end_whatever_comes, "not fenced|told wrongly|told both"),
        Breakage(initialising, "bumped", _same_identity, "not unique"),
        Breakage(initialising, "needs_rotation", _no_rotation, "no epoch left|hanging"),
        Breakage(TimeLimits, "abort_timed_out", _nothing, "hanging"),
        Breakage(coordinator, "_check_producer", _no_error, "late|hanging|mixed"),
    ],
    ids=lambda breakage: breakage.name,
)
def test_a_broken_coordinator_is_found_out(monkeypatch: pytest.MonkeyPatch, breakage: Breakage) -> None:
    assert_found_out(monkeypatch, breakage, simulate, 50)
