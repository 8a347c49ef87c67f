"""Runs a coordinator's state machine without a broker: a clock that only the test moves, a log in memory.

It does what the shell does: records are appended, then replies leave; a failed append undoes what was
decided. Every event is a turn of its own, unless a test puts several into one. Records of a transaction are
appended at once, after those of the turn.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from mainstem.coordinator.machine import Machine
from mainstem.coordinator.topics import TopicInfo
from mainstem.protocol.errors import ErrorCode


class FakeTopics:
    """The cluster's topics; change them with `create` and `delete`."""

    def __init__(self, **partitions: int) -> None:
        self.version = 0
        self._topics: dict[str, TopicInfo] = {}
        self._racks: dict[tuple[bytes, int], frozenset[str]] = {}
        self._ids = count(1)
        for name, partition_count in partitions.items():
            self.create(name, partition_count)

    def create(self, name: str, partitions: int, racks: list[set[str]] | None = None) -> TopicInfo:
        """A topic with an id of its own; one that exists grows."""
        self.version += 1
        known = self._topics.get(name)
        topic_id = known.topic_id if known else next(self._ids).to_bytes(16, "big")
        info = self._topics[name] = TopicInfo(name, topic_id, partitions)
        for partition, places in enumerate(racks or []):
            self._racks[topic_id, partition] = frozenset(places)
        return info

    def delete(self, name: str) -> None:
        self.version += 1
        del self._topics[name]

    def by_name(self, name: str) -> TopicInfo | None:
        return self._topics.get(name)

    def by_id(self, topic_id: bytes) -> TopicInfo | None:
        return next((topic for topic in self._topics.values() if topic.topic_id == topic_id), None)

    def names(self) -> list[str]:
        return list(self._topics)

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        return self._racks.get((topic_id, partition), frozenset())


class Waiting:
    """One request: `answer` is its response, an ErrorCode when it failed, or None as long as it waits."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.answer: Any = None

    def reply(self, response: Any) -> None:
        assert self.answer is None, f"{self.name} was answered twice"
        self.answer = response

    def fail(self, error: ErrorCode) -> None:
        self.reply(error)


class Harness:
    """One machine with its log and its clock."""

    def __init__(self, new_machine: Callable[[], Machine]) -> None:
        self._new_machine = new_machine
        self.machine: Any = new_machine()
        self.log: list[tuple[bytes, bytes | None]] = []
        # By place in the log: the producer of a record in a transaction, and what ended before it.
        self.producers: dict[int, int] = {}
        self.markers: dict[int, list[tuple[int, bool]]] = {}
        self.now_ms = 1_700_000_000_000
        self.appends_fail = False
        self.in_turn = False
        self._records: list[tuple[bytes, bytes | None]] = []
        self._replies: list[tuple[Any, Any]] = []
        self._undo: list[Callable[[], object]] = []
        self.machine.loaded(self.now_ms)
        self.settle()

    def send(self, event: Callable[[Any, Waiting, int], None], name: str = "") -> Waiting:
        """Hand an event to the machine: `event(machine, token, now_ms)`."""
        waiting = Waiting(name)
        event(self.machine, waiting, self.now_ms)
        self.settle()
        return waiting

    @contextmanager
    def turn(self) -> Iterator[None]:
        """What is sent in here is written together, or fails together."""
        self.in_turn = True
        yield
        self.in_turn = False
        self.settle()

    def break_off(self) -> None:
        """What the shell does after an event that raised: it is taken back alone."""
        effects = self.machine.effects
        replies, effects.replies = effects.replies, []
        for action in reversed(effects.undo):
            action()
        effects.undo.clear()
        effects.records.clear()
        effects.transaction = None
        for waiting, _ in replies:
            waiting.fail(ErrorCode.UNKNOWN_SERVER_ERROR)
        self.settle()

    def advance(self, ms: int) -> None:
        """Let time pass; timers run at their own moments, each as an event of its own."""
        end = self.now_ms + ms
        while (deadline := self.machine.timers.next_deadline()) is not None and deadline <= end:
            self.now_ms = max(self.now_ms, deadline)
            self.machine.timers.run_next(self.now_ms)
            self.settle()
        self.now_ms = end

    def restart(self) -> None:
        """The broker dies; another one replays the log."""
        self.machine = self._new_machine()
        for place, (key, value) in enumerate(self.log):
            self._replay_markers(place)
            if place in self.producers:
                self.machine.replay_transactional(self.producers[place], key, value)
            else:
                self.machine.replay(key, value)
        self._replay_markers(len(self.log))
        self.machine.loaded(self.now_ms)
        self.settle()

    def _replay_markers(self, place: int) -> None:
        for producer_id, commit in self.markers.get(place, ()):
            self.machine.transaction_ended(producer_id, commit)

    def end_transaction(self, producer_id: int, commit: bool) -> None:
        """Append the marker of a transaction, after what was decided before."""
        self.end_turn()
        self.markers.setdefault(len(self.log), []).append((producer_id, commit))
        self.machine.transaction_ended(producer_id, commit)

    def settle(self) -> None:
        """What the shell does after every event, and then at the end of the turn."""
        self.collect()
        if not self.in_turn:
            self.end_turn()

    def collect(self) -> None:
        """Put what an event led to to that of the turn. A reply that saw nothing new leaves at once."""
        effects = self.machine.effects
        if effects.transaction is not None:
            self._append_transactional()
        elif effects.records:
            self._records += effects.records
            self._undo += effects.undo
            effects.records = []
        effects.undo.clear()
        replies, effects.replies = effects.replies, []
        if self._records:
            self._replies += replies
        else:
            for waiting, response in replies:
                waiting.reply(response)

    def _append_transactional(self) -> None:
        """An event that cannot be written is undone with those of the turn that cannot be written either, or
        else alone.
        """
        effects = self.machine.effects
        records, transaction = effects.records, effects.transaction
        effects.records, effects.transaction = [], None
        if self.appends_fail:
            self._records += records
            self._undo += effects.undo
            self._replies += effects.replies
            effects.undo, effects.replies = [], []
            self.end_turn()
            return
        self.end_turn()
        for record in records:
            self.producers[len(self.log)] = transaction.producer_id
            self.log.append(record)

    def end_turn(self) -> None:
        """Append what was decided, or take it back."""
        records, self._records = self._records, []
        replies, self._replies = self._replies, []
        undo, self._undo = self._undo, []
        if records and self.appends_fail:
            for action in reversed(undo):
                action()
            for waiting, _ in replies:
                waiting.fail(ErrorCode.NOT_COORDINATOR)
            assert not self.machine.effects.records, "an undo wrote records"
            self.collect()  # an undo may have answered those who waited for long
        else:
            self.log += records
            for waiting, response in replies:
                waiting.reply(response)
