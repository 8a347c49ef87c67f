"""A member of a consumer group, as the records of the log describe it. It never changes; a new one follows.

Assigned partitions carry the epoch in which the member was given them, so that a late commit can be judged.
"""

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mainstem.coordinator.group.records.consumer import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMemberValue,
    CurrentTopicPartitions,
    TargetTopicPartitions,
)

# Topic id -> partition -> the epoch in which the member got it.
Partitions = dict[bytes, dict[int, int]]
# Topic id -> partitions: what a member should come to.
Target = dict[bytes, frozenset[int]]

# The epochs that a heartbeat uses for leaving, for good or until the static member is back.
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2

# Kafka's numbers of a member's states.
STABLE: Final = 0
UNREVOKED_PARTITIONS: Final = 1
UNRELEASED_PARTITIONS: Final = 2
UNKNOWN_STATE: Final = 127
_KNOWN_STATES = (STABLE, UNREVOKED_PARTITIONS, UNRELEASED_PARTITIONS)


class Member(Struct, frozen=True, gc=False):
    """`classic` is there for a member that speaks the classic protocol inside a consumer group."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: int = STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: Partitions = {}
    pending_revocation: Partitions = {}
    classic: ClassicMemberMetadata | None = None

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state == STABLE and self.member_epoch == target_epoch

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """When the member got a partition that it has, or has yet to give up; None for any other."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return epoch if epoch is not None else self.pending_revocation.get(topic_id, {}).get(partition)


def away(member: Member) -> Member:
    """A static member that has left for a while keeps what it has; its successor may commit in any epoch."""
    assigned = {topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()}
    return replace(member, member_epoch=STATIC_LEAVE_EPOCH, assigned=assigned, pending_revocation={})


def metadata_value(member: Member) -> ConsumerGroupMemberMetadataValue:
    return ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=member.classic,
    )


def metadata_fields(value: ConsumerGroupMemberMetadataValue) -> dict[str, Any]:
    """The fields of a member that this record sets."""
    return {
        "instance_id": value.instance_id,
        "rack_id": value.rack_id,
        "client_id": value.client_id,
        "client_host": value.client_host,
        "subscribed_topic_names": frozenset(value.subscribed_topic_names),
        "subscribed_topic_regex": value.subscribed_topic_regex,
        "rebalance_timeout_ms": value.rebalance_timeout_ms,
        "server_assignor": value.server_assignor,
        "classic": value.classic_member_metadata,
    }


def current_value(member: Member) -> ConsumerGroupCurrentMemberAssignmentValue:
    return ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_with_epochs(member.assigned),
        partitions_pending_revocation=_with_epochs(member.pending_revocation),
    )


def current_fields(value: ConsumerGroupCurrentMemberAssignmentValue) -> dict[str, Any]:
    """The fields of a member that this record sets."""
    epoch = max(value.member_epoch, 0)
    return {
        "member_epoch": value.member_epoch,
        "previous_member_epoch": value.previous_member_epoch,
        "state": value.state if value.state in _KNOWN_STATES else UNKNOWN_STATE,
        "assigned": _from_epochs(value.assigned_partitions, epoch),
        "pending_revocation": _from_epochs(value.partitions_pending_revocation, epoch),
    }


def target_value(target: Target) -> ConsumerGroupTargetAssignmentMemberValue:
    return ConsumerGroupTargetAssignmentMemberValue(
        [TargetTopicPartitions(topic_id, sorted(partitions)) for topic_id, partitions in target.items()]
    )


def target_of(value: ConsumerGroupTargetAssignmentMemberValue) -> Target:
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


def _with_epochs(partitions: Partitions) -> list[CurrentTopicPartitions]:
    topics = []
    for topic_id, epochs in partitions.items():
        order = sorted(epochs)
        topics.append(CurrentTopicPartitions(topic_id, order, [epochs[partition] for partition in order]))
    return topics


def _from_epochs(topics: list[CurrentTopicPartitions], default_epoch: int) -> Partitions:
    """Records of Kafka before 4.3 have no epochs: the member's own stands in for them."""
    partitions: Partitions = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [default_epoch] * len(topic.partitions)
        partitions[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return partitions
