"""Groups whose members come, go and change their subscriptions, as cases for the assignors."""

from collections.abc import Iterator
from random import Random
from typing import Any

from mainstem.coordinator.group.assignors import Assignment, GroupSpec, MemberSpec, assign


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def member(
    *topics: int, owned: dict[int, set[int]] | None = None, instance_id: str | None = None
) -> MemberSpec:
    return MemberSpec(
        instance_id=instance_id,
        subscribed_topic_ids=frozenset(map(topic_id, topics)),
        owned={topic_id(topic): frozenset(partitions) for topic, partitions in (owned or {}).items()},
    )


def group(members: dict[str, MemberSpec], *partition_counts: int) -> GroupSpec:
    """The topics are numbered from 1."""
    counts = {topic_id(number): count for number, count in enumerate(partition_counts, 1)}
    homogeneous = len({spec.subscribed_topic_ids for spec in members.values()}) == 1
    return GroupSpec(members, counts, homogeneous)


def after(spec: GroupSpec, target: Assignment) -> GroupSpec:
    """The same group when everybody has what was assigned."""
    members = {
        member_id: old._replace(owned={topic: frozenset(mine) for topic, mine in target[member_id].items()})
        for member_id, old in spec.members.items()
    }
    return spec._replace(members=members)


def life_of_a_group(rng: Random, homogeneous: bool) -> Iterator[GroupSpec]:
    """One group at several moments; what members own is what `uniform` gave them the moment before."""
    counts = {number: rng.randint(1, 12) for number in range(1, rng.randint(1, 6) + 1)}
    members: dict[str, MemberSpec] = {}
    names = iter(range(10_000))
    for _ in range(4):
        members = {member_id: each for member_id, each in members.items() if rng.random() > 0.25}
        for name in (next(names) for _ in range(rng.randint(0 if members else 1, 4))):
            instance_id = f"i{rng.randint(0, 99):02}-{name}" if rng.random() < 0.3 else None
            members[f"m{rng.randint(0, 99):02}-{name}"] = member(instance_id=instance_id)
        if rng.random() < 0.3:
            counts[rng.choice(sorted(counts))] += rng.randint(1, 4)
        everyones = _some_topics(rng, counts, at_least=1)
        for member_id, each in members.items():
            if homogeneous:
                members[member_id] = each._replace(subscribed_topic_ids=everyones)
            elif not each.subscribed_topic_ids or rng.random() < 0.2:
                members[member_id] = each._replace(subscribed_topic_ids=_some_topics(rng, counts, at_least=0))
        partition_counts = {topic_id(number): count for number, count in counts.items()}
        spec = GroupSpec(members, partition_counts, homogeneous)
        yield spec
        members = dict(after(spec, assign("uniform", spec)).members)


def _some_topics(rng: Random, counts: dict[int, int], at_least: int) -> frozenset[bytes]:
    return frozenset(map(topic_id, rng.sample(sorted(counts), rng.randint(at_least, len(counts)))))


def as_json(assignor: str, spec: GroupSpec) -> dict[str, Any]:
    """The case as AssignorOracle.java reads it."""
    return {
        "assignor": assignor,
        "homogeneous": spec.homogeneous,
        "topics": {_number(topic): count for topic, count in spec.partition_counts.items()},
        "members": {
            member_id: {
                "instance": each.instance_id,
                "topics": [_number(topic) for topic in each.subscribed_topic_ids],
                "owned": {_number(topic): sorted(mine) for topic, mine in each.owned.items()},
            }
            for member_id, each in spec.members.items()
        },
    }


def from_json(spec: GroupSpec, answer: dict[str, dict[str, list[int]]]) -> Assignment:
    return {
        member_id: {topic_id(int(topic)): set(mine) for topic, mine in answer.get(member_id, {}).items()}
        for member_id in spec.members
    }


def _number(topic: bytes) -> str:
    return str(int.from_bytes(topic, "big"))


def sizes(target: Assignment) -> dict[str, int]:
    return {member_id: sum(map(len, topics.values())) for member_id, topics in target.items()}


def kept(spec: GroupSpec, target: Assignment) -> int:
    """How many partitions stay with the member that owns them."""
    return sum(
        len(owned & target[member_id].get(topic, set()))
        for member_id, each in spec.members.items()
        for topic, owned in each.owned.items()
    )
