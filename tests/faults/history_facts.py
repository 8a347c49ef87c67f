"""A history turned around: who wrote a value, where it was seen, and what stands at each offset.

A topic that somebody began to delete may come back under its name at any later moment, empty. From then on
nothing that is seen of it says anything about offsets; only values that nobody may see are still told.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mainstem.protocol.resources import TopicPartition
from tests.faults.history import Kind, Operation, Outcome, Poll, Write

NEVER = 2**63
Place = tuple[TopicPartition, int]


@dataclass(frozen=True)
class Sighting:
    """A value that came to a reader."""

    reader: Operation
    where: TopicPartition
    offset: int


class Facts:
    """What the checks look things up in."""

    def __init__(self, history: Sequence[Operation]) -> None:
        self.history = sorted(history, key=lambda operation: operation.began)
        self.writers: dict[str, tuple[Operation, Write]] = {}
        self.sightings: defaultdict[str, list[Sighting]] = defaultdict(list)
        self.final_values: set[str] = set()
        # Of each partition, every value that was acknowledged or read at an offset: one, if all is well.
        self.log: defaultdict[TopicPartition, defaultdict[int, set[str]]]
        self.log = defaultdict(lambda: defaultdict(set))
        self._deletions: dict[str, int] = {}
        for operation in self.history:
            if operation.kind == Kind.DELETE:
                self._deletions.setdefault(operation.topic, operation.began)
        for operation in self.history:
            self._add_writes(operation)
            self._add_reads(operation)
        self.is_complete = any(operation.kind == Kind.FINAL for operation in self.history)

    def _add_writes(self, operation: Operation) -> None:
        for write in operation.writes:
            assert write.value not in self.writers, f"the history itself writes {write.value} twice"
            self.writers[write.value] = operation, write
            if write.acknowledged is not None and self.stands(write.topic, write.acknowledged):
                self.log[write.where][write.offset].add(write.value)

    def _add_reads(self, operation: Operation) -> None:
        for poll in operation.polls:
            for offset, value in poll.records:
                self.sightings[value].append(Sighting(operation, poll.where, offset))
                if self.stands(poll.topic, operation.ended):
                    self.log[poll.where][offset].add(value)
            if operation.kind == Kind.FINAL:
                self.final_values.update(value for _, value in poll.records)

    def stands(self, topic: str, time: int) -> bool:
        """Whether nobody had begun to delete the topic by then."""
        return time < self._deletions.get(topic, NEVER)

    def survives(self, topic: str) -> bool:
        return topic not in self._deletions

    def transactions(self) -> Iterator[Operation]:
        return (operation for operation in self.history if operation.kind == Kind.TRANSACTION)

    def polls(self) -> Iterator[tuple[Operation, Poll]]:
        """Those that say something about offsets."""
        for operation in self.history:
            for poll in operation.polls:
                if self.stands(poll.topic, operation.ended):
                    yield operation, poll

    def describe(self, value: str) -> str:
        """Who wrote it when, where it is, and since when that is known, in seconds of the run."""
        operation, write = self.writers[value]
        places = {(write.where, write.offset)} if write.acknowledged is not None else self.places(value)
        seen = [sighting.reader.ended for sighting in self.sightings.get(value, ())]
        known = min([*seen, *([] if write.acknowledged is None else [write.acknowledged])], default=None)
        begin = self.history[0].began
        since = "never" if known is None else f"{(known - begin) / 1e9:.3f}"
        where = " and ".join(f"{topic}-{partition} at {offset}" for (topic, partition), offset in places)
        sent = f"{(write.sent - begin) / 1e9:.3f}"
        return f"{value} ({operation.kind} {operation.outcome}, sent {sent}, {where} by {since})"

    def is_aborted(self, value: str) -> bool:
        operation, _ = self.writers[value]
        return operation.kind == Kind.TRANSACTION and operation.outcome == Outcome.FAILED

    def is_committed(self, value: str) -> bool:
        """Whether every reader must see it from some moment on: it was acknowledged, or somebody saw it."""
        operation, write = self.writers[value]
        if self.is_aborted(value):
            return False
        if operation.kind == Kind.TRANSACTION:
            acknowledged = operation.outcome == Outcome.OK
        else:
            acknowledged = write.acknowledged is not None
        return acknowledged or value in self.sightings

    def places(self, value: str) -> set[Place]:
        """Where it was read while that meant anything."""
        return {
            (sighting.where, sighting.offset)
            for sighting in self.sightings.get(value, ())
            if self.stands(sighting.where[0], sighting.reader.ended)
        }


def surviving(facts: Facts, writes: Iterable[Write]) -> list[Write]:
    """Those that must be there in the end, if they were committed."""
    return [write for write in writes if facts.survives(write.topic)]
