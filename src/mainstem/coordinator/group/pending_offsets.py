"""Offsets that were committed in transactions which have not ended yet.

For each partition of a group they stand in the order of their records, one for each producer. What was
committed later, outside of a transaction or in one that has ended before, goes for the newer position, as in
Kafka: the older one stays here, without its offset, until its own transaction ends.
"""

from collections.abc import Iterator
from typing import NamedTuple

from mainstem.coordinator.group.offset_store import CommittedOffset


class Place(NamedTuple):
    """What a position is of."""

    group_id: str
    topic: str
    partition: int


# By producer id, the oldest record first; None where a newer position was committed since.
Positions = dict[int, CommittedOffset | None]
# What stood at a place before an event.
PendingChange = tuple[Place, Positions]


class PendingOffsets:
    """Those of one machine. Changes are made by putting other positions in place of those of a partition, so
    that to take one back is to put the former ones there again.
    """

    def __init__(self) -> None:
        # Empty as long as no transaction is open. Not to be changed from outside.
        self.by_group: dict[str, dict[Place, Positions]] = {}
        # The inner dictionaries are sets that keep their order.
        self._by_producer: dict[int, dict[Place, None]] = {}

    def at(self, place: Place) -> Positions:
        """Not to be changed by the caller."""
        return self.of_group(place.group_id).get(place) or {}

    def has(self, group_id: str, topic: str, partition: int) -> bool:
        of_group = self.by_group.get(group_id)
        return of_group is not None and Place(group_id, topic, partition) in of_group

    def of_group(self, group_id: str) -> dict[Place, Positions]:
        """Not to be changed by the caller."""
        return self.by_group.get(group_id) or {}

    def places(self) -> Iterator[Place]:
        for of_group in self.by_group.values():
            yield from of_group

    def put(self, place: Place, positions: Positions) -> PendingChange:
        """Set all positions of a partition; what `restore` needs to take it back."""
        of_group = self.by_group.setdefault(place.group_id, {})
        before = of_group.pop(place, {})
        if positions:
            of_group[place] = positions
        elif not of_group:
            del self.by_group[place.group_id]
        for producer_id in before.keys() - positions.keys():
            places = self._by_producer[producer_id]
            del places[place]
            if not places:
                del self._by_producer[producer_id]
        for producer_id in positions.keys() - before.keys():
            self._by_producer.setdefault(producer_id, {})[place] = None
        return place, before

    def add(self, producer_id: int, place: Place, committed: CommittedOffset) -> PendingChange:
        """The newest position of this producer, after all others."""
        known = self.at(place)
        if known:
            others = {other: position for other, position in known.items() if other != producer_id}
            return self.put(place, others | {producer_id: committed})
        self.by_group.setdefault(place.group_id, {})[place] = {producer_id: committed}
        self._by_producer.setdefault(producer_id, {})[place] = None
        return place, {}

    def overtake(self, place: Place) -> PendingChange:
        """A newer position was committed."""
        return self.put(place, dict.fromkeys(self.at(place)))

    def clear(self, place: Place) -> PendingChange:
        """The position was deleted, with whatever transactions may still say of it."""
        return self.put(place, {})

    def end(self, producer_id: int, commit: bool) -> list[tuple[Place, CommittedOffset]]:
        """The producer's transaction is over: the positions that are committed by that."""
        committed: list[tuple[Place, CommittedOffset]] = []
        for place in self._by_producer.pop(producer_id, ()):
            of_group = self.by_group[place.group_id]
            positions = of_group[place]
            position = positions[producer_id]
            if len(positions) > 1:
                of_group[place] = _without(positions, producer_id, commit and position is not None)
            else:
                del of_group[place]
                if not of_group:
                    del self.by_group[place.group_id]
            if commit and position is not None:
                committed.append((place, position))
        return committed

    def restore(self, changes: list[PendingChange]) -> None:
        for place, before in reversed(changes):
            self.put(place, before)


def _without(positions: Positions, producer_id: int, overtakes: bool) -> Positions:
    """What is left when one transaction is over. If it has committed a position, older ones are overtaken."""
    kept: Positions = {}
    for other, known in positions.items():
        if other == producer_id:
            overtakes = False
        else:
            kept[other] = None if overtakes else known
    return kept
