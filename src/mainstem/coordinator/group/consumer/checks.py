"""What is wrong with a heartbeat of the consumer protocol, before anything is changed: KafkaError says it."""

from collections.abc import Collection

from mainstem.coordinator.group.consumer.group import ConsumerGroup
from mainstem.coordinator.group.consumer.member import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    UNKNOWN_STATE,
    Member,
)
from mainstem.coordinator.group.consumer.reconcile import Owned, is_subset
from mainstem.protocol.apis.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mainstem.protocol.errors import ErrorCode, KafkaError

# From this version on the member makes its own id.
_OWN_MEMBER_ID_VERSION = 1


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]) -> None:
    """Whatever can be said without looking at the group."""
    epoch = request.member_epoch
    if version >= _OWN_MEMBER_ID_VERSION or epoch > 0 or epoch == LEAVE_EPOCH:
        _check_not_empty(request.member_id, "the member id")
    _check_not_empty(request.group_id, "the group id")
    _check_not_empty(request.instance_id, "the instance id")
    _check_not_empty(request.rack_id, "the rack id")
    if epoch == 0:
        _check_join(request)
    elif epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        raise _invalid("a member that leaves for a while (epoch -2) needs an instance id")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise _invalid(f"{epoch} is not an epoch that a member can have")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"there is no assignor {request.server_assignor!r}; there are {', '.join(assignors)}",
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("a member that joins has to say its rebalance timeout")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("a member that joins owns no partitions, and has to say so with an empty list")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("a member that joins has to be subscribed, by names or by a regular expression")


def _check_not_empty(text: str | None, what: str) -> None:
    # Kafka trims what Java takes for white space: all characters up to the blank.
    if text is not None and not text.strip("".join(map(chr, range(33)))):
        raise _invalid(f"{what} may not be empty")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def check_size(group: ConsumerGroup, member_id: str, members_max: int) -> None:
    if len(group.members) >= members_max and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group has the most members it may have, {members_max}"
        )


def check_epoch(member: Member, epoch: int, owned: Owned) -> None:
    """Epoch 0 joins anew; the epoch before the member's own is fine if only the answer was lost."""
    if epoch in (0, member.member_epoch):
        return
    was_answer_lost = epoch == member.previous_member_epoch and is_subset(owned, member.assigned)
    if epoch > member.member_epoch or not was_answer_lost:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"the member has epoch {epoch} and the group knows it in epoch {member.member_epoch}; "
            "it has to give up its partitions and join again",
        )


def check_state(member: Member, owned: Owned) -> None:
    """A state that a newer version wrote: starting from nothing is the one safe way on."""
    if member.state == UNKNOWN_STATE and (owned is None or owned):
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"the state of member {member.member_id} is not known to this broker; "
            "it has to give up its partitions and join again",
        )


def static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> Member:
    """The member that has the instance id, if it is the one that asks."""
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"no member of group {group.group_id} has instance id {instance_id}"
        )
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"instance id {instance_id} belongs to member {member.member_id} now, not to {member_id}",
        )
    return member


def check_released(member: Member, member_id: str) -> None:
    """A static member takes another's place only after that one has left for a while."""
    if member.member_epoch != STATIC_LEAVE_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"member {member_id} cannot join with instance id {member.instance_id}: "
            f"member {member.member_id} has it and has not left",
        )
