"""Coordinators of groups and of transactions that move from broker to broker, under a long random history
that is repeatable by its seed: leaders are killed, cut off from the controller, or elected anew, and what
they had not replicated is cut off. What was acknowledged holds all the same, and no transaction is left open.
"""

import asyncio
from random import Random
from typing import Any

import pytest

from mainstem.broker.coordination import shell
from mainstem.broker.coordination.loading import _Replayer
from mainstem.broker.coordination.pending_replies import PendingReplies, give
from mainstem.broker.coordination.remote_markers import RemoteMarkers
from mainstem.broker.coordination.transactions import TransactionCoordinators
from mainstem.broker.logs.partition import Partition
from mainstem.coordinator.transaction.completion import Completion
from mainstem.protocol.errors import ErrorCode
from mainstem.records.batch import read_header
from mainstem.records.control import ControlType, control_type_of
from mainstem.records.record import iter_records
from mainstem.storage.log import Log
from tests.sim.moving_broker import BROKERS, DATA, batches_of
from tests.sim.moving_clients import Client, Committer, Member
from tests.sim.moving_producer import MovingProducer
from tests.sim.moving_world import World
from tests.sim.seeds import SEED, Breakage, Violation, assert_found_out, simulate_all, soaked
from tests.sim.virtual_loop import VirtualLoop

SEEDS_PER_TEST = 4
TROUBLE_S = 10.0
CALM_S = 30.0


class History:
    """One run: the world and its clients."""

    def __init__(self, random: Random, loop: asyncio.AbstractEventLoop) -> None:
        self.world = World(random, loop)
        self.committers = [Committer(self.world, f"c{number}") for number in range(3)]
        self.members = [Member(self.world, f"m{number}") for number in range(2)]
        self.producers = [MovingProducer(self.world, f"p{number}") for number in range(3)]

    async def run(self) -> None:
        world = self.world
        clients: list[Client] = [*self.committers, *self.members, *self.producers]
        running = [world.run(client.run()) for client in clients]
        end = world.loop.time() + TROUBLE_S
        while world.loop.time() < end:
            await asyncio.sleep(world.random.uniform(0.1, 0.8))
            self._check_failure()
            world.trouble()
        world.calm_down()
        await self._until("clients", lambda: all(task.done() for task in running))
        await self._until("transactions", lambda: not self._open())
        await self._until("replicas", lambda: not self._differences())
        await self._judge()

    async def _until(self, what: str, condition: Any) -> None:
        end = self.world.loop.time() + CALM_S
        while not condition():
            if self.world.loop.time() > end:
                raise Violation(f"hanging: {what}: {self._open()} {self._differences()}")
            await asyncio.sleep(0.1)
            self._check_failure()

    def _check_failure(self) -> None:
        if self.world.failure is not None:
            raise self.world.failure

    def _open(self) -> list[str]:
        """The transactions that are not over, in coordinators and in partitions."""
        found = []
        for broker in self.world.brokers.values():
            found += [name for machine in broker.transactions.shell.machines() for name in machine.state.open]
            if broker.coordinators.problem:
                found.append(broker.coordinators.problem)
        for place, led in self.world.parts.items():
            log = self.world.brokers[led.leader].logs[place]
            found += [f"{place}: {producer}" for producer in log.producers.state.open_transactions.values()]
        return found

    def _differences(self) -> list[str]:
        return [
            f"{place} of {follower}"
            for place, led in self.world.parts.items()
            for follower in BROKERS
            if batches_of(self.world.brokers[follower].logs[place], 0)
            != batches_of(self.world.brokers[led.leader].logs[place], 0)
        ]

    async def _judge(self) -> None:
        """A transaction is committed in all of its partitions or in none, its offsets too, as was told."""
        outcomes = {
            place: outcomes_in(self.world.brokers[led.leader].logs[place])
            for place, led in self.world.parts.items()
            if place[0] == DATA
        }
        for producer in self.producers:
            expected = -1
            for transaction in producer.transactions:
                tag = transaction.tag
                found = {place: known[tag] for place, known in outcomes.items() if tag in known}
                is_committed = any(found.values())
                if not all(found.get(place) is is_committed for place in transaction.places if is_committed):
                    raise Violation(f"lost: {tag} is {found}, was acknowledged in {transaction.places}")
                if len(set(found.values())) > 1:
                    raise Violation(f"torn: {tag} is {found}")
                if transaction.told is not None and transaction.places and transaction.told != is_committed:
                    raise Violation(f"told wrongly: {tag} was told {transaction.told}, is {found}")
                if is_committed and transaction.has_offsets:
                    expected = transaction.number
            committed = None
            while committed is None:
                committed = await Client(self.world, "judge").committed_offset(producer.name, stable=True)
            if committed != expected:
                raise Violation(f"other offset: {producer.name} has committed {expected}, is at {committed}")


def outcomes_in(log: Log) -> dict[str, bool]:
    """How the transactions in a partition have ended."""
    outcomes: dict[str, bool] = {}
    under_way: dict[int, list[str]] = {}
    for _, batch in batches_of(log, 0):
        header = read_header(batch)
        values = [record.value or b"" for record in iter_records(memoryview(batch))]
        if not header.is_control:
            under_way.setdefault(header.producer_id, []).extend(value.decode() for value in values)
            continue
        (record,) = iter_records(memoryview(batch))
        for tag in under_way.pop(header.producer_id, []):
            if tag in outcomes:
                raise Violation(f"doubled: {tag}")
            outcomes[tag] = control_type_of(record.key) is ControlType.COMMIT
    return outcomes


def simulate(seed: int) -> History:
    random = Random(seed)
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(random)) as runner:
        history = History(random, runner.get_loop())
        runner.run(history.run())
    return history


@pytest.mark.parametrize("first", soaked(range(SEED * 1000, SEED * 1000 + 40, SEEDS_PER_TEST), 2))
def test_what_was_acknowledged_holds_wherever_the_coordinator_is(first: int) -> None:
    simulate_all(simulate, range(first, first + SEEDS_PER_TEST))


def test_the_histories_are_worth_their_time() -> None:
    """Coordinators move, commits are acknowledged meanwhile, transactions end either way, with markers sent
    to other brokers.
    """
    history = simulate(0)
    assert history.world.elections > 20
    assert all(committer.acknowledged > 10 for committer in history.committers)
    told = [transaction.told for producer in history.producers for transaction in producer.transactions]
    assert told.count(True) > 10
    assert told.count(False) > 3


# ---- each rule is broken on purpose


async def _load_to_the_high_watermark(partition: Partition, machine: Any, *_: Any) -> None:
    """What is acknowledged is committed. But a new leader does not know yet how far that goes."""
    replayer = _Replayer(partition, machine)
    for offset, batch in batches_of(partition.log, partition.log.log_start_offset):
        if offset < partition.high_watermark:
            replayer.replay_batch(memoryview(batch), read_header(batch))


def _deliver_at_once(self: PendingReplies, replies: Any, end_offset: int) -> None:
    give(replies)


def _say_yes(self: TransactionCoordinators, *arguments: Any, then: Any, **_: Any) -> None:
    then(dict.fromkeys(arguments[3], ErrorCode.NONE))


def _nothing(*arguments: Any) -> None:
    pass


@pytest.mark.parametrize(
    "breakage",
    [
        Breakage(
            shell,
            "load",
            _load_to_the_high_watermark,
            "forgotten|taken back|other offset|told wrongly|hanging",
        ),
        Breakage(
            PendingReplies, "deliver", _deliver_at_once, "forgotten|taken back|other offset|told wrongly"
        ),
        Breakage(TransactionCoordinators, "decide_anywhere", _say_yes, "hanging|told wrongly|torn|other"),
        Breakage(RemoteMarkers, "_answer", _nothing, "hanging"),
        Breakage(Completion, "loaded", _nothing, "hanging"),
    ],
    ids=lambda breakage: breakage.name,
)
def test_a_broken_part_is_found_out(monkeypatch: pytest.MonkeyPatch, breakage: Breakage) -> None:
    assert_found_out(monkeypatch, breakage, simulate, 10)
