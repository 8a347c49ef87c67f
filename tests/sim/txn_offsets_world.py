"""A world for the simulation of offsets in transactions: producers, plain committers and administrators of
two groups, a broker that fails to write and starts again at any record; and what must come of it.

What must come of it is worked out from the log alone, in the words of Kafka: an offset of a transaction
counts when the transaction is committed, unless a record with a higher offset was committed at the same place
before.
"""

from random import Random
from typing import NamedTuple

from mainstem.coordinator.group.records import decode_key, decode_value
from mainstem.coordinator.group.records.offsets import OffsetCommitKey
from tests.coordinator.txn_offset_world import TxnWorld
from tests.sim.seeds import Violation

GROUPS = ("g", "h")
TOPICS = ("t", "u")
PRODUCERS = (1, 2, 3)
UNSTABLE = "UNSTABLE_OFFSET_COMMIT"

Place = tuple[str, str, int]


class Position(NamedTuple):
    offset: int
    record_offset: int


class FromTheLog:
    """The offsets as the log says them, read as Kafka reads it."""

    def __init__(self, world: TxnWorld) -> None:
        self.committed: dict[Place, Position] = {}
        self.pending: dict[int, dict[Place, Position]] = {}
        harness = world.harness
        for number, (key, value) in enumerate(harness.log):
            self._end(harness.markers.get(number, []))
            decoded = decode_key(key)
            if isinstance(decoded, OffsetCommitKey):
                place = (decoded.group, decoded.topic, decoded.partition)
                offset = None if value is None else decode_value(decoded, value).offset
                self._record(place, offset, number, harness.producers.get(number))
        self._end(harness.markers.get(len(harness.log), []))

    def _record(self, place: Place, offset: int | None, number: int, producer_id: int | None) -> None:
        if offset is None:
            self.committed.pop(place, None)
            for places in self.pending.values():
                places.pop(place, None)
        elif producer_id is None:
            self.committed[place] = Position(offset, number)
        else:
            self.pending.setdefault(producer_id, {})[place] = Position(offset, number)

    def _end(self, markers: list[tuple[int, bool]]) -> None:
        for producer_id, commit in markers:
            for place, position in self.pending.pop(producer_id, {}).items():
                known = self.committed.get(place)
                if commit and (known is None or position.record_offset > known.record_offset):
                    self.committed[place] = position

    def offsets(self, group: str, topic: str) -> dict[int, int]:
        return {at[2]: known.offset for at, known in self.committed.items() if at[:2] == (group, topic)}

    def unstable(self, group: str, topic: str) -> set[int]:
        return {at[2] for places in self.pending.values() for at in places if at[:2] == (group, topic)}


class SimulatedWorld(TxnWorld):
    """Whatever can happen, by chance."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = Random(seed)
        self._offset = 0

    def step(self) -> None:
        """One event, or several in one turn; the broker may fail to write them, and may die after it."""
        random = self.random
        self.harness.appends_fail = random.random() < 0.1
        if random.random() < 0.3:
            with self.harness.turn():
                for _ in range(random.randint(2, 4)):
                    self._event()
        else:
            self._event()
        self.harness.appends_fail = False
        if random.random() < 0.1:
            self._end_one()
        if random.random() < 0.05:
            self.harness.restart()

    def _event(self) -> None:
        random = self.random
        group, topic = random.choice(GROUPS), random.choice(TOPICS)
        partitions = random.sample(range(4), random.randint(1, 3))
        self._offset += 1
        at = dict.fromkeys(partitions, self._offset)
        kind = random.random()
        if self.harness.in_turn:
            # Answers come at the end of the turn, when nobody looks for them any more.
            if kind < 0.5:
                self.send_txn_commit(random.choice(PRODUCERS), group, at, topic)
            else:
                self.send_commit(group, at, topic)
        elif kind < 0.45:
            self.txn_commit(random.choice(PRODUCERS), group, at, topic)
        elif kind < 0.75:
            self.commit(group, topic, at=at)
        elif kind < 0.85:
            self.delete(group, topic, *partitions)
        elif kind < 0.87:
            self.delete_group(group)
        elif kind < 0.9 and not self.harness.appends_fail:
            self._replace_topic(topic)
        elif kind < 0.95:
            self.advance_minutes(random.randint(1, 30))
        else:
            self._end_one()

    def _end_one(self) -> None:
        self.end(self.random.choice(PRODUCERS), self.random.choice(("commit", "abort")))

    def _replace_topic(self, topic: str) -> None:
        self.topics.delete(topic)
        self.topics_changed()
        self.topics.create(topic, 4)
        self.topics_changed()

    # ---- the rules

    def check(self) -> None:
        """What is answered is what the log says, and everything that was ended is over."""
        truth = FromTheLog(self)
        for group in GROUPS:
            for topic in TOPICS:
                expected = truth.offsets(group, topic)
                found = self.fetch(group, topic)
                if found != expected:
                    raise Violation(f"other offsets: {group} {topic} is at {found}, not at {expected}")
                stable: dict[int, int | str] = dict(expected)
                stable |= dict.fromkeys(truth.unstable(group, topic), UNSTABLE)
                found_stable = self.stable(group, topic)
                if found_stable != stable:
                    raise Violation(f"other stable offsets: {group} {topic} is {found_stable}, not {stable}")
        open_now = {producer: sorted(at) for producer, at in self.open_transactions().items()}
        expected_open = {producer: sorted(at) for producer, at in truth.pending.items() if at}
        if open_now != expected_open:
            raise Violation(f"other transactions: {open_now}, not {expected_open}")
        known = {group for group, *_ in truth.committed}
        known |= {group for places in expected_open.values() for group, *_ in places}
        if not known <= self.groups():
            raise Violation(f"lost group: there are {self.groups()}, and offsets of {known}")

    def check_restart(self) -> None:
        """Whoever reads the log comes to the same."""
        self.harness.restart()
        self.check()
