"""The `uniform` assignor: members get equally many partitions, and keep what they have where they can.

Balance comes first: no partition stays with a member while another subscriber of the topic has two fewer.
Within that, a member loses a partition only where balance asks for it.
"""

from collections.abc import Iterable
from functools import lru_cache
from heapq import heapify, heappop, heapreplace
from itertools import islice

from mainstem.coordinator.group.assignors.spec import Assignment, GroupSpec

# Where subscriptions overlap in chains, evening out one topic upsets the next; each round roughly halves the
# difference, and Kafka too is content after this many.
_ROUNDS_MAX = 16

# A member's partitions of one topic, which often are the very ones of its former target.
_Kept = dict[bytes, frozenset[int]]


def assign_uniform(spec: GroupSpec) -> Assignment:
    return _assign_alike(spec) if spec.homogeneous else _Balancer(spec).assign()


def _assign_alike(spec: GroupSpec) -> Assignment:
    """All members are subscribed to the same topics: everyone gets the same number, some get one more."""
    topics = sorted(next(iter(spec.members.values())).subscribed_topic_ids)
    counts = {topic_id: spec.partition_counts[topic_id] for topic_id in topics}
    free = {topic_id: set(_partitions(count)) for topic_id, count in counts.items()}
    target = _keep_owned(spec, free)
    sizes = {member_id: sum(map(len, kept.values())) for member_id, kept in target.items()}
    quota, longer = divmod(sum(counts.values()), len(sizes))
    # Whoever has more than the quota now is the first to be allowed one more, and need not lose it.
    allowed = dict.fromkeys(
        sorted(sizes, key=lambda member_id: sizes[member_id] <= quota)[:longer], quota + 1
    )
    for member_id, size in sizes.items():
        if size > allowed.get(member_id, quota):
            _give_up(target[member_id], size - allowed.get(member_id, quota), free)
    left = ((topic_id, partition) for topic_id in topics for partition in sorted(free[topic_id]))
    for member_id, size in sizes.items():
        missing = allowed.get(member_id, quota) - size
        if missing > 0:
            _take(target[member_id], islice(left, missing))
    return target


@lru_cache(maxsize=64)
def _partitions(count: int) -> frozenset[int]:
    """Copying a set is far quicker than making one of a range."""
    return frozenset(range(count))


def _keep_owned(spec: GroupSpec, free: dict[bytes, set[int]]) -> dict[str, _Kept]:
    """What members have of the topics that they are still subscribed to; it is taken out of `free`."""
    target: dict[str, _Kept] = {}
    for member_id, member in spec.members.items():
        kept = target[member_id] = {}
        for topic_id, owned in member.owned.items():
            if topic_id in member.subscribed_topic_ids:
                nobodys = free[topic_id]
                mine = owned if owned <= nobodys else owned & nobodys
                if mine:
                    nobodys -= mine
                    kept[topic_id] = mine
    return target


def _give_up(kept: _Kept, surplus: int, free: dict[bytes, set[int]]) -> None:
    """Frees the last of a member's partitions, those beyond its quota."""
    for topic_id in sorted(kept, reverse=True):
        mine = sorted(kept[topic_id])
        stay = max(0, len(mine) - surplus)
        free[topic_id].update(mine[stay:])
        surplus -= len(mine) - stay
        if stay:
            kept[topic_id] = frozenset(mine[:stay])
        else:
            del kept[topic_id]
        if not surplus:
            break


def _take(kept: _Kept, partitions: Iterable[tuple[bytes, int]]) -> None:
    taken: dict[bytes, list[int]] = {}
    for topic_id, partition in partitions:
        taken.setdefault(topic_id, []).append(partition)
    for topic_id, new in taken.items():
        kept[topic_id] = kept.get(topic_id, frozenset()).union(new)


class _Balancer:
    """Members with different subscriptions. They are numbers here: comparing those is quick."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._ids = list(spec.members)
        subscribers: dict[bytes, list[int]] = {}
        for member, member_spec in enumerate(spec.members.values()):
            for topic_id in member_spec.subscribed_topic_ids:
                subscribers.setdefault(topic_id, []).append(member)
        self._subscribers = subscribers
        self._free = {topic_id: set(range(spec.partition_counts[topic_id])) for topic_id in subscribers}
        self._target = {
            member_id: {topic_id: set(partitions) for topic_id, partitions in kept.items()}
            for member_id, kept in _keep_owned(spec, self._free).items()
        }
        self._sizes = [sum(map(len, kept.values())) for kept in self._target.values()]

    def assign(self) -> Assignment:
        # Topics that burden their subscribers most come first, while there is most room to choose.
        topics = sorted(self._subscribers, key=self._burden)
        for topic_id in topics:
            if self._free[topic_id]:
                self._hand_out(topic_id)
        contested = [topic_id for topic_id in topics if len(self._subscribers[topic_id]) > 1]
        for _ in range(_ROUNDS_MAX):
            if not sum(self._even_out(topic_id) for topic_id in contested):
                break
        return self._target

    def _burden(self, topic_id: bytes) -> tuple[float, int, bytes]:
        count = len(self._subscribers[topic_id])
        return -self._spec.partition_counts[topic_id] / count, count, topic_id

    def _hand_out(self, topic_id: bytes) -> None:
        """Each free partition to the subscriber with the fewest."""
        lightest = self._by_size(self._subscribers[topic_id])
        for partition in sorted(self._free[topic_id]):
            member = lightest[0] % len(self._ids)
            self._target[self._ids[member]].setdefault(topic_id, set()).add(partition)
            self._sizes[member] += 1
            heapreplace(lightest, lightest[0] + len(self._ids))

    def _by_size(self, members: Iterable[int], sign: int = 1) -> list[int]:
        """A heap of members by their sizes; one number holds both."""
        sizes, many = self._sizes, len(self._ids)
        heap = [sign * sizes[member] * many + member for member in members]
        heapify(heap)
        return heap

    def _even_out(self, topic_id: bytes) -> int:
        """Moves partitions of the topic from its fullest to its emptiest subscribers; says how many."""
        subscribers, sizes, many = self._subscribers[topic_id], self._sizes, len(self._ids)
        count_of = sizes.__getitem__
        if max(map(count_of, subscribers)) - min(map(count_of, subscribers)) < 2:
            return 0
        moved = 0
        lightest = self._by_size(subscribers)
        givers = {member: stack for member in subscribers if (stack := self._to_give(topic_id, member))}
        heaviest = self._by_size(givers, sign=-1)
        # Givers stay above takers, so an entry in one heap never goes stale through the other.
        while heaviest:
            heavy, light = heaviest[0] % many, lightest[0] % many
            if sizes[heavy] - sizes[light] < 2:
                break
            self._move(topic_id, givers[heavy].pop(), heavy, light)
            moved += 1
            heapreplace(lightest, lightest[0] + many)
            if givers[heavy]:
                heapreplace(heaviest, heaviest[0] + many)
            else:
                heappop(heaviest)
        return moved

    def _to_give(self, topic_id: bytes, member: int) -> list[int]:
        """The member's partitions of the topic, last what it gives first: what is new to it."""
        member_id = self._ids[member]
        owned = self._spec.members[member_id].owned.get(topic_id, frozenset())
        mine = self._target[member_id].get(topic_id, ())
        return sorted(mine, key=lambda partition: (partition not in owned, partition))

    def _move(self, topic_id: bytes, partition: int, giver: int, taker: int) -> None:
        given = self._target[self._ids[giver]]
        given[topic_id].remove(partition)
        if not given[topic_id]:
            del given[topic_id]
        self._target[self._ids[taker]].setdefault(topic_id, set()).add(partition)
        self._sizes[giver] -= 1
        self._sizes[taker] += 1
