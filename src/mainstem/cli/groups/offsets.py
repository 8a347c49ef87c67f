"""The committed offsets of a group that no member of it changes: reading them, and setting them."""

from __future__ import annotations

from collections.abc import Mapping

from mainstem.cli.errors import CommandError
from mainstem.protocol.errors import ErrorCode
from mainstem.protocol.resources import TopicPartition
from mainstem.wire import Cluster, CommittedOffset, KafkaRefusal

# A commit from outside is answered like one of a member that is not in the group (or of an old generation).
_ACTIVE = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)


def committed_offsets(cluster: Cluster, group_id: str) -> dict[TopicPartition, int]:
    """Every committed offset of the group."""
    found = cluster.offset_fetch(group_id, require_stable=False)
    return {partition: committed.offset for partition, committed in sorted(found.items())}


def commit_offsets(cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Set the committed offsets of a group that has no members."""
    try:
        cluster.offset_commit(group_id, {part: CommittedOffset(offset) for part, offset in offsets.items()})
    except KafkaRefusal as refusal:
        if refusal.code in _ACTIVE:
            raise active_group(group_id) from None
        raise


def active_group(group_id: str, members: str = "members") -> CommandError:
    """Offsets of a group with members are its members' business."""
    return CommandError(
        f"group {group_id} has {members}: offsets can only be reset while nobody is in it",
        f"stop its consumers and try again; `mainstem groups members {group_id}` shows them",
    )
