"""Every change of a consumer group: written for the log, made in memory, and taken back if the log fails.

`replay` makes the same changes from the records of the log.
"""

from functools import lru_cache, partial
from typing import Any

from msgspec.structs import replace

from mainstem.coordinator.group.consumer.group import ConsumerGroup, Resolved
from mainstem.coordinator.group.consumer.member import (
    LEAVE_EPOCH,
    Member,
    Target,
    current_fields,
    current_value,
    metadata_fields,
    metadata_value,
    target_of,
    target_value,
)
from mainstem.coordinator.group.records import consumer as records
from mainstem.coordinator.group.records import encode_key, encode_value
from mainstem.coordinator.group.state import GroupState


class Journal:
    """Writes for all consumer groups of one machine."""

    def __init__(self, state: GroupState) -> None:
        self._state = state
        self._replays = {
            records.ConsumerGroupMetadataKey: _replay_epoch,
            records.ConsumerGroupPartitionMetadataKey: _replay_partition_metadata,
            records.ConsumerGroupMemberMetadataKey: _replay_member,
            records.ConsumerGroupTargetAssignmentMetadataKey: _replay_assignment_epoch,
            records.ConsumerGroupTargetAssignmentMemberKey: _replay_target,
            records.ConsumerGroupCurrentMemberAssignmentKey: _replay_current,
            records.ConsumerGroupRegularExpressionKey: _replay_pattern,
        }

    def new_group(self, group_id: str) -> ConsumerGroup:
        """In memory only: `add_group` puts it among the others."""
        return ConsumerGroup(group_id, self)

    def add_group(self, group: ConsumerGroup) -> None:
        """The group stands under its id from now on, whatever stood there before."""
        former = self._state.groups.get(group.group_id)
        if former is not group:
            self._state.groups[group.group_id] = group
            self._state.effects.on_failure(partial(self._put_back, group.group_id, former))

    def delete_group(self, group: ConsumerGroup) -> None:
        group_id = group.group_id
        for member_id in group.members:
            self._tombstone(records.ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id))
        for member_id in group.members:
            self._tombstone(records.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id))
        self._tombstone(records.ConsumerGroupTargetAssignmentMetadataKey(group_id))
        for member_id in group.members:
            self._tombstone(records.ConsumerGroupMemberMetadataKey(group_id, member_id))
        for pattern in group.resolved:
            self._tombstone(records.ConsumerGroupRegularExpressionKey(group_id, pattern))
        self._tombstone(records.ConsumerGroupPartitionMetadataKey(group_id))
        self._tombstone(records.ConsumerGroupMetadataKey(group_id))
        former = self._state.groups.pop(group_id, None)
        self._state.effects.on_failure(partial(self._put_back, group_id, former))

    def write_group(self, group: ConsumerGroup) -> None:
        """All records of a group that was made in memory."""
        group_id = group.group_id
        for member in group.members.values():
            self._write_member(group_id, member)
        self._write_epoch(group)
        for member_id, target in group.targets.items():
            key = records.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)
            self._write(key, target_value(target))
        self._write_assignment_epoch(group)
        for member in group.members.values():
            self._write_current(group_id, member)
        self.add_group(group)

    # ---- members

    def put_member(self, group: ConsumerGroup, member: Member) -> None:
        """The member joined, or described itself anew."""
        self._write_member(group.group_id, member)
        self._apply_member(group, member)

    def put_current(self, group: ConsumerGroup, member: Member) -> None:
        """The member has another epoch, state or assignment."""
        self._write_current(group.group_id, member)
        self._apply_member(group, member)

    def drop_member(self, group: ConsumerGroup, member_id: str) -> None:
        self._tombstone(records.ConsumerGroupCurrentMemberAssignmentKey(group.group_id, member_id))
        self._tombstone(records.ConsumerGroupTargetAssignmentMemberKey(group.group_id, member_id))
        self._tombstone(records.ConsumerGroupMemberMetadataKey(group.group_id, member_id))
        former, former_target = group.members.get(member_id), group.targets.get(member_id)
        group.drop_member(member_id)
        group.targets.pop(member_id, None)
        self._state.effects.on_failure(partial(_restore_target, group, member_id, former_target))
        self._state.effects.on_failure(partial(_restore_member, group, member_id, former))

    def replace_member(self, group: ConsumerGroup, old: Member, new: Member) -> None:
        """A static member is back with a new id: it gets what the old one had."""
        target = group.target_of(old.member_id)
        self.drop_member(group, old.member_id)
        self.put_member(group, new)
        self.put_target(group, new.member_id, target)
        self._write_current(group.group_id, new)

    # ---- the group

    def put_epoch(self, group: ConsumerGroup, epoch: int, metadata_hash: int) -> None:
        former = group.epoch, group.metadata_hash
        group.epoch, group.metadata_hash = epoch, metadata_hash
        self._write_epoch(group)
        self._state.effects.on_failure(partial(_restore_epoch, group, *former))

    def put_target(self, group: ConsumerGroup, member_id: str, target: Target) -> None:
        value = encode_value(target_value(target))
        self._state.effects.write(_target_key(group.group_id, member_id), value)
        former = group.targets.get(member_id)
        group.targets[member_id] = target
        self._state.effects.on_failure(partial(_restore_target, group, member_id, former))

    def put_assignment_epoch(self, group: ConsumerGroup, epoch: int, timestamp_ms: int) -> None:
        former = group.assignment_epoch, group.assignment_timestamp_ms
        group.put_assignment_epoch(epoch, timestamp_ms)
        self._write_assignment_epoch(group)
        self._state.effects.on_failure(partial(group.put_assignment_epoch, *former))

    def put_resolved(self, group: ConsumerGroup, pattern: str, resolved: Resolved | None) -> None:
        key = records.ConsumerGroupRegularExpressionKey(group.group_id, pattern)
        if resolved is None:
            self._tombstone(key)
        else:
            topics, version, timestamp_ms = resolved
            value = records.ConsumerGroupRegularExpressionValue(sorted(topics), version, timestamp_ms)
            self._write(key, value)
        former = group.resolved.get(pattern)
        group.put_resolved(pattern, resolved)
        self._state.effects.on_failure(partial(group.put_resolved, pattern, former))

    def drop_partition_metadata(self, group: ConsumerGroup) -> None:
        self._tombstone(records.ConsumerGroupPartitionMetadataKey(group.group_id))
        group.has_partition_metadata_record = False
        self._state.effects.on_failure(partial(setattr, group, "has_partition_metadata_record", True))

    # ---- from the log

    def replay(self, key: Any, value: Any) -> None:
        """Apply a record. One that deletes what is not there is passed over, as is one for a group of another
        kind: the records that made it another kind come later in the log.
        """
        group = self._state.groups.get(key.group_id)
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return
            group = self._state.groups[key.group_id] = self.new_group(key.group_id)
        self._replays[type(key)](group, key, value)
        if value is None and type(key) is records.ConsumerGroupMetadataKey:
            del self._state.groups[key.group_id]

    # ---- the parts of the above

    def _apply_member(self, group: ConsumerGroup, member: Member) -> None:
        former = group.members.get(member.member_id)
        group.put_member(member)
        self._state.effects.on_failure(partial(_restore_member, group, member.member_id, former))

    def _put_back(self, group_id: str, former: Any) -> None:
        if former is None:
            self._state.groups.pop(group_id, None)
        else:
            self._state.groups[group_id] = former

    def _write_member(self, group_id: str, member: Member) -> None:
        key = records.ConsumerGroupMemberMetadataKey(group_id, member.member_id)
        self._write(key, metadata_value(member))

    def _write_current(self, group_id: str, member: Member) -> None:
        key = records.ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id)
        self._write(key, current_value(member))

    def _write_epoch(self, group: ConsumerGroup) -> None:
        key = records.ConsumerGroupMetadataKey(group.group_id)
        self._write(key, records.ConsumerGroupMetadataValue(group.epoch, group.metadata_hash))

    def _write_assignment_epoch(self, group: ConsumerGroup) -> None:
        key = records.ConsumerGroupTargetAssignmentMetadataKey(group.group_id)
        epoch, timestamp_ms = group.assignment_epoch, group.assignment_timestamp_ms
        self._write(key, records.ConsumerGroupTargetAssignmentMetadataValue(epoch, timestamp_ms))

    def _write(self, key: Any, value: Any) -> None:
        self._state.effects.write(encode_key(key), encode_value(value))

    def _tombstone(self, key: Any) -> None:
        self._state.effects.write(encode_key(key), None)


@lru_cache(maxsize=1024)
def _target_key(group_id: str, member_id: str) -> bytes:
    """Every join changes the targets of many members."""
    return encode_key(records.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id))


def _restore_member(group: ConsumerGroup, member_id: str, former: Member | None) -> None:
    if former is None:
        group.drop_member(member_id)
    else:
        group.put_member(former)


def _restore_target(group: ConsumerGroup, member_id: str, former: Target | None) -> None:
    if former is None:
        group.targets.pop(member_id, None)
    else:
        group.targets[member_id] = former


def _restore_epoch(group: ConsumerGroup, epoch: int, metadata_hash: int) -> None:
    group.epoch, group.metadata_hash = epoch, metadata_hash
    # Whatever was looked at since has to be looked at again.
    group.topics_version = -1


def _replay_epoch(group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is not None:
        group.epoch, group.metadata_hash = value.epoch, value.metadata_hash


def _replay_partition_metadata(group: ConsumerGroup, key: Any, value: Any) -> None:
    group.has_partition_metadata_record = value is not None


def _replay_member(group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        group.drop_member(key.member_id)
    else:
        member = group.members.get(key.member_id) or Member(key.member_id)
        group.put_member(replace(member, **metadata_fields(value)))


def _replay_current(group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is not None:
        member = group.members.get(key.member_id) or Member(key.member_id)
        group.put_member(replace(member, **current_fields(value)))
    elif (left := group.members.get(key.member_id)) is not None:
        # The record that deletes the member itself follows.
        gone = {"member_epoch": LEAVE_EPOCH, "previous_member_epoch": LEAVE_EPOCH}
        group.put_member(replace(left, **gone, assigned={}, pending_revocation={}))


def _replay_assignment_epoch(group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is not None:
        group.put_assignment_epoch(value.assignment_epoch, value.assignment_timestamp)
    else:
        group.put_assignment_epoch(-1, 0)


def _replay_target(group: ConsumerGroup, key: Any, value: Any) -> None:
    _restore_target(group, key.member_id, None if value is None else target_of(value))


def _replay_pattern(group: ConsumerGroup, key: Any, value: Any) -> None:
    resolved = None
    if value is not None:
        resolved = Resolved(frozenset(value.topics), value.version, value.timestamp)
    group.put_resolved(key.regular_expression, resolved)
