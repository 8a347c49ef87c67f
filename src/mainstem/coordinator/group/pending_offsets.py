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

    __slots__ = ("_by_producer", "by_group")

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

    def of_producer(self, producer_id: int) -> list[Place]:
        return list(self._by_producer.get(producer_id, ()))

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
        others = {other: known for other, known in self.at(place).items() if other != producer_id}
        return self.put(place, others | {producer_id: committed})

    def overtake(self, place: Place) -> PendingChange:
        """A newer position was committed."""
        return self.put(place, dict.fromkeys(self.at(place)))

    def clear(self, place: Place) -> PendingChange:
        """The position was deleted, with whatever transactions may still say of it."""
        return self.put(place, {})

    def take(self, producer_id: int, place: Place, commit: bool) -> CommittedOffset | None:
        """The producer's transaction has ended: the position that is committed by that, if any."""
        positions = self.at(place)
        committed = positions[producer_id]
        kept: Positions = {}
        older = commit and committed is not None
        for other, known in positions.items():
            if other == producer_id:
                older = False
            else:
                kept[other] = None if older else known
        self.put(place, kept)
        return committed if commit else None

    def restore(self, changes: list[PendingChange]) -> None:
        for place, before in reversed(changes):
            self.put(place, before)
