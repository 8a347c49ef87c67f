"""Which copies go to which broker, so that a broker is emptied, or all hold about the same number.

It moves as few copies as it can, keeps the order of those that stay (the first is the preferred leader), and
keeps the copies of a partition on racks apart where there are enough of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

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
    """Copies go from brokers that hold most to those that hold least, until they differ by one at most."""
    spread = _Spread(replicas, racks)
    order = sorted(replicas)
    while True:
        fullest = sorted(racks, key=lambda broker: (-spread.held[broker], broker))
        emptiest = fullest[-1] if fullest else None
        if emptiest is None or not _move_one(spread, order, fullest, emptiest):
            return _moved(replicas, spread)


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
