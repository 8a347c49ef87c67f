"""A world of transactional producers for the simulation: a broker that fails to write and dies, markers that
come late and twice, topics that are deleted; and the rules that must hold all the same.

The partitions are judged by what is in them, the coordinator by what it answers. They refuse what Kafka's
refuse: batches and markers of old epochs, and batches of a transaction that the coordinator does not know of.
"""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from mainstem.config import BrokerConfig
from mainstem.coordinator.transaction.completion import MarkersDue
from mainstem.coordinator.transaction.coordinator import TransactionCoordinator
from mainstem.coordinator.transaction.metadata import State, TransactionMetadata
from mainstem.coordinator.transaction.records import decode_key, decode_value, encode_key, encode_value
from mainstem.coordinator.transaction.time_limits import ProducerIdDue
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from tests.coordinator.harness import FakeTopics, Harness
from tests.sim.seeds import Violation
from tests.sim.transaction_log import Partition, Tag

TRANSACTIONAL_IDS = ("x", "y")
TIMEOUT_MS = 30_000
STABLE_TOPIC, DOOMED_TOPIC = "stable", "doomed"
_STABLE_PARTITIONS = 3
_EPOCH_MAX = 32_767

Event = Callable[[Any, Any, int], None]


class Rules:
    """What must hold at any time."""

    def __init__(self) -> None:
        # Who was told that it has this producer id and epoch.
        self._owners: dict[tuple[int, int], str] = {}
        # The identity that a producer took over each transactional id with, last.
        self._taken_over: dict[str, tuple[int, int]] = {}
        # What producers were told of their transactions.
        self._told: dict[Tag, bool] = {}

    def identified(self, owner: str, producer_id: int, epoch: int) -> None:
        if epoch >= _EPOCH_MAX:
            raise Violation(f"no epoch left: {owner} was told {epoch}")
        known = self._owners.setdefault((producer_id, epoch), owner)
        if known != owner:
            raise Violation(f"not unique: {(producer_id, epoch)} was told to {known} and {owner}")

    def taken_over(self, transactional_id: str, producer_id: int, epoch: int) -> None:
        self._taken_over[transactional_id] = (producer_id, epoch)

    def ended(self, transactional_id: str, producer_id: int, epoch: int, tag: Tag, commit: bool) -> None:
        """A producer was told that its transaction ended as it wished."""
        newest = self._taken_over.get(transactional_id)
        if newest is not None and newest[0] == producer_id and epoch < newest[1]:
            raise Violation(f"not fenced: {tag} ended with epoch {epoch} after {newest} had taken over")
        if self._told.setdefault(tag, commit) != commit:
            raise Violation(f"told both: {tag} committed and aborted")

    def judge(self, outcomes: dict[Tag, dict[TopicPartition, bool]]) -> None:
        """A transaction is committed in all of its partitions, or aborted in all, and its producer knows."""
        for tag, by_partition in outcomes.items():
            if len(set(by_partition.values())) > 1:
                raise Violation(f"torn: {tag} is {by_partition}")
            if tag in self._told and {self._told[tag]} != set(by_partition.values()):
                raise Violation(f"told wrongly: {tag} was told {self._told[tag]}, is {by_partition}")


class Marker(NamedTuple):
    """One marker on its way. Those that a dead coordinator sent may still arrive, but nobody hears of it."""

    due: MarkersDue
    place: TopicPartition
    incarnation: int


class MortalHarness(Harness):
    """A broker that can be killed in the middle of a turn. Nobody is answered then."""

    def die(self, *, after_append: bool) -> None:
        if after_append:
            self.log += self._records
        self._records, self._replies, self._undo = [], [], []
        self.restart()


class World:
    """The broker, its partitions, the time and the rules, with everything that can happen to them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.rules = Rules()
        self.is_calm = False
        self.incarnation = 0
        self.topics = FakeTopics(**{STABLE_TOPIC: _STABLE_PARTITIONS, DOOMED_TOPIC: 1})
        self.partitions = {(STABLE_TOPIC, index): Partition() for index in range(_STABLE_PARTITIONS)}
        self.partitions[DOOMED_TOPIC, 0] = Partition()
        self._producer_ids = 100
        self._markers: list[Marker] = []
        self._deliveries: list[tuple[int, Callable[[], None]]] = []
        self.turn = 0
        self.broker = MortalHarness(self._new_machine)
        self._known: dict[str, TransactionMetadata] = {}
        self._read = 0
        self._have_old_ids()

    def _new_machine(self) -> TransactionCoordinator:
        return TransactionCoordinator(BrokerConfig({}), self.topics, self.incarnation, self)

    def _have_old_ids(self) -> None:
        """Some transactional ids have little left of the epochs of their producer ids."""
        for number, transactional_id in enumerate(TRANSACTIONAL_IDS):
            if self.random.random() < 0.5:
                epoch = self.random.randrange(_EPOCH_MAX - 8, _EPOCH_MAX)
                old = TransactionMetadata(number, epoch, TIMEOUT_MS, self.broker.now_ms)
                self.broker.log.append((encode_key(transactional_id), encode_value(old)))
        self.broker.restart()

    def happens(self, probability: float) -> bool:
        """Never, once the world is calm."""
        return not self.is_calm and self.random.random() < probability

    def new_producer_id(self) -> int:
        self._producer_ids += 1
        return self._producer_ids

    # ---- events

    def deliver(self, turns: int, event: Callable[[], None]) -> None:
        """Let it happen, at once or some turns later."""
        if turns:
            self._deliveries.append((self.turn + turns, event))
        else:
            event()

    def send(self, token: Any, event: Event) -> None:
        """Within this turn; its end decides whether it was written."""
        event(self.broker.machine, token, self.broker.now_ms)
        self.broker.collect()

    def reply(self, response: Any) -> None:
        """What the coordinator says besides its answers."""
        if isinstance(response, ProducerIdDue):
            name, fresh = response.transactional_id, self.new_producer_id()
            self._deliveries.append(
                (self.turn, lambda: self.send(None, lambda m, _, now: m.abort_timed_out(name, fresh, now)))
            )
            return
        assert isinstance(response, MarkersDue)
        for place in sorted(response.partitions):
            partition = self.partitions.get(place)
            if (
                partition is not None
                and partition.newest_epoch(response.producer_id) > response.producer_epoch
            ):
                raise Violation(f"outdated: {response} after a newer epoch began")
            self._markers.append(Marker(response, place, self.incarnation))

    def fail(self, error: ErrorCode) -> None:
        """What was decided is undone."""

    # ---- markers

    def _write_markers(self) -> None:
        markers, self._markers = self._markers, []
        for marker in self.random.sample(markers, len(markers)):
            if self.happens(0.3):
                self._markers.append(marker)
                continue
            self._write(marker)
            if self.happens(0.1):
                self._write(marker)
            if marker.due.transaction_version >= 2 and self.happens(0.1):
                # The same once more, very late, and nobody hears of it. With the older protocol it would end
                # the next transaction, which has the same epoch.
                self._markers.append(marker._replace(incarnation=-1))

    def _write(self, marker: Marker) -> None:
        due, place = marker.due, marker.place
        partition = self.partitions.get(place)
        accepted = partition is None or partition.append_marker(
            due.producer_id,
            due.producer_epoch,
            due.coordinator_epoch,
            due.commit,
            due.transaction_version,
        )
        if accepted and marker.incarnation == self.incarnation:
            self.send(None, lambda m, _, now: m.markers_written(due, {place}, now))

    # ---- topics

    def _change_topics(self) -> None:
        place = (DOOMED_TOPIC, 0)
        if place not in self.partitions:
            if self.is_calm or self.happens(0.2):
                self.topics.create(DOOMED_TOPIC, 1)
                self.partitions[place] = Partition()
        elif self.happens(0.02):
            self.topics.delete(DOOMED_TOPIC)
            del self.partitions[place]
        self.send(None, lambda m, _, now: m.topics_changed(now))

    # ---- turns

    def end_turn(self) -> None:
        self._write_markers()
        self._change_topics()
        due = [event for turn, event in self._deliveries if turn <= self.turn]
        self._deliveries = [(turn, event) for turn, event in self._deliveries if turn > self.turn]
        self.random.shuffle(due)
        for event in due:
            event()
        self.turn += 1
        if self.happens(0.04):
            self._die()
        self.broker.appends_fail = self.happens(0.1)
        self.broker.end_turn()
        self._check_log()
        # Timers belong to turns of their own, whose writes may fail as well.
        self.broker.appends_fail = self.happens(0.05)
        self.broker.advance(self.random.choice((1, 10, 100, 1000, 5000)))
        self.broker.appends_fail = False
        self._check_log()

    def _die(self) -> None:
        """Killed before the last records are written, or right after."""
        self.incarnation += 1
        self._markers = [marker for marker in self._markers if self.happens(0.3)]
        self.broker.die(after_append=self.happens(0.5))

    def _check_log(self) -> None:
        """A restart would find what was decided, and nothing else."""
        for key, value in self.broker.log[self._read :]:
            transactional_id = decode_key(key)
            assert transactional_id is not None
            if value is None:
                self._known.pop(transactional_id, None)
            else:
                self._known[transactional_id] = decode_value(value)
        self._read = len(self.broker.log)
        actual = self.broker.machine.state.transactions
        if _essence(actual) != _essence(self._known):
            raise Violation(f"not written: {actual} is {self._known} in the log")

    def judge(self) -> None:
        outcomes: dict[Tag, dict[TopicPartition, bool]] = {}
        for place, partition in self.partitions.items():
            for tag, commit in partition.outcomes().items():
                outcomes.setdefault(tag, {})[place] = commit
        self.rules.judge(outcomes)

    @property
    def is_settled(self) -> bool:
        """No transaction is open, neither for the coordinator nor in a partition."""
        return not self.broker.machine.state.open and not any(
            partition.has_open_transactions for partition in self.partitions.values()
        )


def _essence(transactions: dict[str, TransactionMetadata]) -> dict[str, tuple[Any, ...]]:
    """What a record has: while markers are written, not which of them are missing."""
    return {
        name: (
            known.state,
            known.producer_id,
            known.producer_epoch,
            known.next_producer_id,
            known.previous_producer_id,
            known.client_version,
            known.partitions if known.state is State.ONGOING else None,
        )
        for name, known in transactions.items()
    }
