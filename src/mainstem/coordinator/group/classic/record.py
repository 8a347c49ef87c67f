"""The group's record: written when a generation has its assignment or is empty, read after a restart."""

from mainstem.coordinator.group.classic.group import ClassicGroup
from mainstem.coordinator.group.classic.member import ClassicMember
from mainstem.coordinator.group.classic.phases import Phase
from mainstem.coordinator.group.records import encode_key, encode_value
from mainstem.coordinator.group.records.classic import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from mainstem.coordinator.group.state import GroupState


def write_group(state: GroupState, group: ClassicGroup) -> None:
    """The current generation with its members and their assignments."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.phase_since_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol_name),
                assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
    state.effects.write(encode_key(GroupMetadataKey(group.group_id)), encode_value(value))


def write_new_group(state: GroupState, group: ClassicGroup) -> None:
    """A group that somebody asks to join is there from now on, without members so far."""
    value = GroupMetadataValue(current_state_timestamp=group.phase_since_ms)
    state.effects.write(encode_key(GroupMetadataKey(group.group_id)), encode_value(value))


def read_group(state: GroupState, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    group = ClassicGroup(state, group_id, value.current_state_timestamp)
    group.phase = Phase.STABLE if value.members else Phase.EMPTY
    group.generation = value.generation
    group.protocol_type = value.protocol_type
    group.protocol_name = (value.protocol or "") if value.members else value.protocol
    group.leader_id = value.leader
    for stored in value.members:
        member = ClassicMember(
            stored.member_id,
            stored.group_instance_id,
            stored.client_id,
            stored.client_host,
            stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout,
            stored.session_timeout,
            ((value.protocol or "", bytes(stored.subscription)),),
            bytes(stored.assignment),
        )
        group.add(member, value.protocol_type)
    group.topics = group.compute_topics()
    return group
