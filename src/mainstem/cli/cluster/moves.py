"""Which copies go to which broker, so that a broker is emptied, or all hold about the same number and are the
first, which is the preferred leader, of about the same number.

It moves as few copies as it can, changes the order of those that stay only to even out who is the first, and
keeps the copies of a partition on racks apart where there are enough of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from mainstem.protocol.resources import TopicPartition

Replicas = Mapping[TopicPartition, Sequence[int]]


class NoRoomError(Exception):
    """There are fewer brokers than a partition has copies."""


class _Spread:
    """The copies while they are moved in thought."""

    def __init__(self, replicas: Replicas, racks: Mapping[int, str | None]) -> None:
        self.replicas = {where: list(ids) for where, ids in replicas.items()}
        self._racks = racks
        self.held = Counter(dict.fromkeys(racks, 0))
        self.held.update(broker for ids in replicas.values() for broker in ids)

    def replace(self, where: TopicPartition, leaving: int, coming: int) -> None:
        ids = self.replicas[where]
        ids[ids.index(leaving)] = coming
        self.held[leaving] -= 1
        self.held[coming] += 1

    def clashes(self, where: TopicPartition, leaving: int, coming: int) -> int:
        """How many of the copies that stay are on the rack of the new one; unknown racks never clash."""
        rack = self._racks.get(coming)
        others = [broker for broker in self.replicas[where] if broker != leaving]
        return sum(rack is not None and self._racks.get(broker) == rack for broker in others)

    def successor(self, where: TopicPartition, leaving: int, among: Sequence[int]) -> int | None:
        """Who takes a copy: apart from the others if that can be, then who holds least."""
        able = [broker for broker in among if broker not in self.replicas[where]]
        if not able:
            return None
        return min(able, key=lambda broker: (self.clashes(where, leaving, broker), self.held[broker], broker))


def drain(
    replicas: Replicas, leaving: int, racks: Mapping[int, str | None]
) -> dict[TopicPartition, list[int]]:
    """Every copy of this broker goes to others; `racks` has the brokers that live."""
    spread = _Spread(replicas, racks)
    among = [broker for broker in racks if broker != leaving]
    for where in sorted(replicas):
        if leaving in spread.replicas[where]:
            coming = spread.successor(where, leaving, among)
            if coming is None:
                raise NoRoomError(
                    f"{where[0]}-{where[1]} has {len(replicas[where])} copies, and only {len(among)} other "
                    "brokers live"
                )
            spread.replace(where, leaving, coming)
    return _moved(replicas, spread)


def even_out(replicas: Replicas, racks: Mapping[int, str | None]) -> dict[TopicPartition, list[int]]:
    """Copies go from brokers that hold most to those that hold least, until they differ by one at most; then
    others of a partition's copies become the first, which moves no data.
    """
    spread = _Spread(replicas, racks)
    order = sorted(replicas)
    while True:
        fullest = sorted(racks, key=lambda broker: (-spread.held[broker], broker))
        emptiest = fullest[-1] if fullest else None
        if emptiest is None or not _move_one(spread, order, fullest, emptiest):
            _FirstPlaces(spread.replicas, racks).even_out()
            return _moved(replicas, spread)


class _FirstPlaces:
    """Who comes first in each partition. A broker with many gives one away through others if need be: 1 to
    2 in one partition, 2 to 3 in another, and it is 3 that has one more. Where no such way is left, no order
    of these copies is more even.
    """

    def __init__(self, replicas: dict[TopicPartition, list[int]], brokers: Iterable[int]) -> None:
        self._replicas = replicas
        self._first = dict.fromkeys(sorted(brokers), 0)
        # By the first and another one of their brokers, the partitions that could be led by the other.
        self._ways: dict[int, dict[int, dict[TopicPartition, None]]] = {
            broker: {other: {} for other in self._first} for broker in self._first
        }
        for where in sorted(replicas):
            self._count(where, 1)

    def even_out(self) -> None:
        while any(self._give_from(broker) for broker in sorted(self._first, key=self._fullest)):
            pass

    def _fullest(self, broker: int) -> tuple[int, int]:
        return -self._first[broker], broker

    def _give_from(self, giving: int) -> bool:
        """Give away one first place, if somebody can be reached who has two less."""
        came_from = {giving: giving}
        reached = [giving]
        for broker in reached:
            if self._first[giving] - self._first[broker] >= 2:
                while broker != giving:
                    before = came_from[broker]
                    self._put_first(next(iter(self._ways[before][broker])), broker)
                    broker = before
                return True
            following = [other for other, ways in self._ways[broker].items() if ways]
            reached += [other for other in following if other not in came_from]
            came_from = dict.fromkeys(following, broker) | came_from
        return False

    def _put_first(self, where: TopicPartition, broker: int) -> None:
        self._count(where, -1)
        ids = self._replicas[where]
        ids.remove(broker)
        ids.insert(0, broker)
        self._count(where, 1)

    def _count(self, where: TopicPartition, change: int) -> None:
        """Brokers that do not live keep what they have."""
        first, *others = self._replicas[where]
        if first not in self._first:
            return
        self._first[first] += change
        for other in others:
            if other in self._first and change > 0:
                self._ways[first][other][where] = None
            elif other in self._first:
                del self._ways[first][other][where]


def _move_one(spread: _Spread, order: list[TopicPartition], fullest: list[int], coming: int) -> bool:
    for leaving in fullest:
        if spread.held[leaving] - spread.held[coming] < 2:
            return False
        for where in order:
            ids = spread.replicas[where]
            if leaving in ids and coming not in ids:
                before = spread.clashes(where, leaving, leaving)
                if spread.clashes(where, leaving, coming) <= before:
                    spread.replace(where, leaving, coming)
                    return True
    return False


def _moved(before: Replicas, spread: _Spread) -> dict[TopicPartition, list[int]]:
    return {where: ids for where, ids in spread.replicas.items() if ids != list(before[where])}
