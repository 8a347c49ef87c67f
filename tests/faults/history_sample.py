"""Histories as a faultless broker would give them: the ground in which tests of the checker plant anomalies.

Clients take turns at random; their transactions overlap, some are aborted, some never get an answer and are
committed or aborted all the same. The broker is a few lists.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random

from mainstem.protocol.resources import TopicPartition
from tests.faults.history import Kind, Operation, Outcome, Poll, Progress, Write

TOPICS = {"red": 3, "green": 2, "blue": 1, "doomed": 1}
CLIENTS = 5
_TURNS = 600
_MARKER = ""


@dataclass
class _Entry:
    """What stands at an offset: a value, or a marker."""

    value: str
    is_open: bool
    is_visible: bool


@dataclass
class _Open:
    """A transaction that has not ended."""

    operation: Operation
    entries: list[tuple[TopicPartition, _Entry]] = field(default_factory=list)


class FaultlessRun:
    """Makes one history; `operations` has it."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._time = 0
        self._written = 0
        self._logs: defaultdict[TopicPartition, list[_Entry]] = defaultdict(list)
        self._open: dict[str, _Open] = {}
        self._positions: dict[tuple[str, TopicPartition], int] = {}
        self._topics = dict(TOPICS)
        self.operations: list[Operation] = []
        for turn in range(_TURNS):
            if turn == _TURNS // 2:
                self._delete("doomed")
            self._turn(f"client-{self._random.randrange(CLIENTS)}")
        for process in list(self._open):
            self._end(process)
        self._final()

    def _turn(self, process: str) -> None:
        if process in self._open:
            if self._random.random() < 0.3:
                self._end(process)
            else:
                self._write(self._open[process].operation, self._open[process])
            return
        act = self._random.choice([self._begin, self._begin, self._send, self._poll])
        act(process)

    def _now(self) -> int:
        self._time += 1
        return self._time

    def _anywhere(self) -> TopicPartition:
        topic = self._random.choice(list(self._topics))
        return topic, self._random.randrange(self._topics[topic])

    def _new(self, process: str, kind: Kind, outcome: Outcome = Outcome.OK) -> Operation:
        # The lists are not those of the defaults: the tests change what they find in them.
        return Operation(process, kind, self._now(), 0, outcome, None, [], [], [])

    def _close(self, operation: Operation) -> None:
        operation.ended = self._now()
        self.operations.append(operation)

    def _begin(self, process: str) -> None:
        operation = self._new(process, Kind.TRANSACTION)
        self._open[process] = _Open(operation)
        if self._random.random() < 0.5:
            where = self._anywhere()
            group = f"group-of-{process}"
            poll = self._read(where, self._positions.get((group, where), 0), 5)
            operation.polls.append(poll)
            operation.progress.append(Progress(group, *where, poll.position, poll.end))

    def _send(self, process: str) -> None:
        operation = self._new(process, Kind.SEND)
        for _ in range(self._random.randint(1, 3)):
            self._write(operation, None)
        if self._random.random() < 0.25:
            operation.outcome = Outcome.UNKNOWN
            operation.writes[-1].acknowledged, operation.writes[-1].offset = None, -1
        self._close(operation)

    def _write(self, operation: Operation, transaction: _Open | None) -> None:
        where = self._anywhere()
        self._written += 1
        value = f"{operation.process}.{self._written}"
        write = Write(where[0], value, self._now(), where[1], len(self._logs[where]))
        entry = _Entry(value, is_open=transaction is not None, is_visible=transaction is None)
        self._logs[where].append(entry)
        if transaction is not None:
            transaction.entries.append((where, entry))
        write.acknowledged = self._now()
        operation.writes.append(write)

    def _end(self, process: str) -> None:
        """Commit, abort, or either of them without an answer."""
        transaction = self._open.pop(process)
        operation = transaction.operation
        commits = self._random.random() < 0.75
        if commits or self._random.random() < 0.5:
            operation.decided_at = self._now()
            operation.outcome = Outcome.OK if commits else Outcome.UNKNOWN
            if self._random.random() < 0.2:
                operation.outcome = Outcome.UNKNOWN
        else:
            operation.outcome = Outcome.FAILED
        for _, entry in transaction.entries:
            entry.is_open = False
            entry.is_visible = commits
        for where in sorted({where for where, _ in transaction.entries}):
            self._logs[where].append(_Entry(_MARKER, is_open=False, is_visible=False))
        for step in operation.progress if commits else ():
            if step.topic in self._topics:
                self._positions[step.group, (step.topic, step.partition)] = step.after
        self._close(operation)

    def _poll(self, process: str) -> None:
        operation = self._new(process, Kind.POLL)
        for where in sorted({self._anywhere(), self._anywhere()}):
            start = self._random.randrange(len(self._logs[where]) + 1)
            operation.polls.append(self._read(where, start, 10))
        self._close(operation)

    def _read(self, where: TopicPartition, start: int, limit: int) -> Poll:
        records: list[tuple[int, str]] = []
        log = self._logs[where]
        end = start
        while end < len(log) and not log[end].is_open and len(records) < limit:
            if log[end].is_visible:
                records.append((end, log[end].value))
            end += 1
        return Poll(*where, start, end, records)

    def _delete(self, topic: str) -> None:
        operation = self._new("administrator", Kind.DELETE)
        operation.topic = topic
        del self._topics[topic]
        # Somebody who had not heard of it brings it back, empty.
        self._logs[topic, 0].clear()
        late = self._new("late", Kind.SEND)
        late.writes.append(Write(topic, "late.1", self._now(), 0, 0, self._now()))
        self._close(late)
        self._close(operation)

    def _final(self) -> None:
        operation = self._new("reader", Kind.FINAL)
        for topic, partitions in self._topics.items():
            for number in range(partitions):
                where = topic, number
                poll = self._read(where, 0, len(self._logs[where]))
                poll.high_watermark = len(self._logs[where])
                operation.polls.append(poll)
        for (group, where), position in self._positions.items():
            if where[0] in self._topics:
                operation.progress.append(Progress(group, *where, position, position))
        self._close(operation)
