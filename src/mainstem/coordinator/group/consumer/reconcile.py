"""How one member moves from what it has towards its target assignment, a step per heartbeat.

It first gives up what it should not have (UNREVOKED_PARTITIONS), then moves to the target's epoch and takes
what is free; what others have yet to release keeps it in UNRELEASED_PARTITIONS. It must never give a member a
partition that another one has.
"""

from collections.abc import Callable, Sequence, Set
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from mainstem.coordinator.group.consumer.member import (
    STABLE,
    UNRELEASED_PARTITIONS,
    UNREVOKED_PARTITIONS,
    Member,
    Partitions,
    Target,
)


class OwnedTopic(Protocol):
    """What a member says it owns of one topic."""

    topic_id: bytes
    partitions: list[int]


# None: the member did not say.
Owned = Sequence[OwnedTopic] | None


class Goal(NamedTuple):
    """Where the member is to go, and what it may look at on the way.

    `is_taken(topic_id, partition)` says that a member other than this one has the partition.
    """

    epoch: int
    target: Target
    subscribed_topic_ids: Set[bytes]
    is_taken: Callable[[bytes, int], bool]


def reconcile(member: Member, goal: Goal, has_subscription_changed: bool, owned: Owned) -> Member:
    """The member after this heartbeat; the same one when it cannot move."""
    if member.state == STABLE and member.member_epoch == goal.epoch:
        return _without_unsubscribed(member, goal, owned) if has_subscription_changed else member
    if member.state == UNREVOKED_PARTITIONS and _owns_any(owned, member.pending_revocation):
        return _without_unsubscribed(member, goal, owned) if has_subscription_changed else member
    return _next_assignment(member, goal, owned)


def is_subset(owned: Owned, partitions: Partitions) -> bool:
    """Whether the member said what it owns, and owns nothing but these."""
    return owned is not None and all(
        partition in partitions.get(topic.topic_id, ()) for topic in owned for partition in topic.partitions
    )


def _owns_any(owned: Owned, partitions: Partitions) -> bool:
    """A member that does not say what it owns may own them still."""
    return owned is None or any(
        partition in partitions.get(topic.topic_id, ()) for topic in owned for partition in topic.partitions
    )


def _without_unsubscribed(member: Member, goal: Goal, owned: Owned) -> Member:
    """Take away at once what the member is no longer subscribed to, before there is a new target."""
    gone = [topic_id for topic_id in member.assigned if topic_id not in goal.subscribed_topic_ids]
    if not gone:
        return member
    assigned = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in gone}
    pending = dict(member.pending_revocation)
    for topic_id in gone:
        pending[topic_id] = {**pending.get(topic_id, {}), **member.assigned[topic_id]}
    changed = replace(member, assigned=assigned, previous_member_epoch=member.member_epoch)
    if _owns_any(owned, pending):
        return replace(changed, state=UNREVOKED_PARTITIONS, pending_revocation=pending)
    return changed


def _next_assignment(member: Member, goal: Goal, owned: Owned) -> Member:
    assigned: Partitions = {}
    revoked: Partitions = {}
    free: Partitions = {}
    is_waiting = False
    nothing: frozenset[int] = frozenset()
    for topic_id in {**goal.target, **member.assigned}:
        target = goal.target.get(topic_id, nothing) if topic_id in goal.subscribed_topic_ids else nothing
        current = member.assigned.get(topic_id, {})
        kept = {partition: epoch for partition, epoch in current.items() if partition in target}
        if kept:
            assigned[topic_id] = kept
        if len(kept) < len(current):
            revoked[topic_id] = {p: epoch for p, epoch in current.items() if p not in target}
        if len(kept) < len(target):
            missing = target.difference(kept)
            available = [partition for partition in missing if not goal.is_taken(topic_id, partition)]
            if available:
                free[topic_id] = dict.fromkeys(sorted(available), goal.epoch)
            is_waiting |= len(available) < len(missing)
    if revoked and _owns_any(owned, revoked):
        return replace(
            member,
            state=UNREVOKED_PARTITIONS,
            previous_member_epoch=member.member_epoch,
            assigned=assigned,
            pending_revocation=revoked,
        )
    for topic_id, epochs in free.items():
        assigned[topic_id] = {**assigned.get(topic_id, {}), **epochs}
    return replace(
        member,
        state=UNRELEASED_PARTITIONS if is_waiting else STABLE,
        previous_member_epoch=member.member_epoch,
        member_epoch=goal.epoch,
        assigned=assigned,
        pending_revocation={},
    )
