"""Looks for a cycle in the order of a run's writes.

Each record was appended at one moment: after it was sent, before it was acknowledged, and before anybody had
read it. Records of one partition were appended in the order of their offsets, those of one producer to one
partition in the order of sending. When these orders together form a cycle, no run of a broker explains them.

Whole transactions are no nodes here: Kafka does not isolate writers, so two transactions that run at the same
time may well lie in one partition in this order and in another in that.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from tests.faults.history import Operation, Outcome
from tests.faults.history_facts import Facts

# A value's append, or a moment of the run by its number.
Node = str | int
_BEGIN, _END = 0, 1


class _Order:
    """What came before what. Moments are a chain, so that time takes one edge each, not one for each pair."""

    def __init__(self) -> None:
        self.before: defaultdict[Node, set[Node]] = defaultdict(set)
        self._moments: list[tuple[int, int, str]] = []

    def append_after(self, value: str, time: int) -> None:
        self._moments.append((time, _BEGIN, value))

    def append_before(self, value: str, time: int) -> None:
        self._moments.append((time, _END, value))

    def close(self) -> None:
        # At one time what begins stands first: it does not follow what ends at that very moment.
        for number, (_, kind, value) in enumerate(sorted(self._moments)):
            if number:
                self.before[number].add(number - 1)
            if kind == _BEGIN:
                self.before[value].add(number)
            else:
                self.before[number].add(value)


def write_cycle(facts: Facts) -> Iterator[str]:
    """At most one cycle, told as the values that it leads over."""
    order = _Order()
    logs = [_certain(facts, entries) for entries in facts.log.values()]
    placed = {value for log in logs for value in log}
    for operation in facts.history:
        _add_writes(order, operation, placed)
    for value in placed:
        for sighting in facts.sightings.get(value, ()):
            if facts.stands(sighting.where[0], sighting.reader.ended):
                order.append_before(value, sighting.reader.ended)
    for log in logs:
        _chain(order, log)
    order.close()
    try:
        TopologicalSorter(order.before).prepare()
    except CycleError as error:
        found = [node for node in error.args[1][1:] if isinstance(node, str)]
        steps = min((_shortest(order, value) for value in found), key=len)
        yield f"{' before '.join([*steps, steps[0]])}: {'; '.join(map(facts.describe, steps))}"


def _shortest(order: _Order, value: str) -> list[str]:
    """The cycle through this value that leads over the fewest others. Time alone takes no step."""
    came_from: dict[Node, Node] = {}
    queue: deque[Node] = deque([value])
    while queue:
        node = queue.popleft()
        for earlier in order.before[node]:
            if earlier == value:
                steps = [value]
                while node != value:
                    steps += [node] if isinstance(node, str) else []
                    node = came_from[node]
                return steps
            if earlier not in came_from:
                came_from[earlier] = node
                if isinstance(earlier, str):
                    queue.append(earlier)
                else:
                    queue.appendleft(earlier)
    raise AssertionError(f"{value} is in no cycle")


def _certain(facts: Facts, entries: dict[int, set[str]]) -> list[str]:
    """A partition's values in order, without what other checks complain of already."""
    alone = [min(values) for _, values in sorted(entries.items()) if len(values) == 1]
    times = Counter(alone)
    return [value for value in alone if times[value] == 1 and len(facts.places(value)) < 2]


def _add_writes(order: _Order, operation: Operation, placed: set[str]) -> None:
    by_partition = defaultdict(list)
    for write in operation.writes:
        if write.value not in placed:
            continue
        by_partition[write.where].append(write.value)
        order.append_after(write.value, write.sent)
        if write.acknowledged is not None:
            order.append_before(write.value, write.acknowledged)
        elif operation.outcome == Outcome.OK:
            order.append_before(write.value, operation.ended)
    for where, values in by_partition.items():
        if where[1] >= 0:
            _chain(order, values)


def _chain(order: _Order, values: list[str]) -> None:
    for earlier, later in pairwise(values):
        order.before[later].add(earlier)
