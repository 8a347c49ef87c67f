"""The answers to JoinGroup that several modules give."""

from mainstem.coordinator.group.classic.group import ClassicGroup
from mainstem.coordinator.group.classic.member import ClassicMember
from mainstem.protocol.apis.k11_join_group import JoinGroupResponse, JoinGroupResponseMember
from mainstem.protocol.errors import ErrorCode

# From this version on no protocol is null, before it is the empty string.
_NULL_PROTOCOL_NAME = 7


def join_error(error: ErrorCode, member_id: str, version: int) -> JoinGroupResponse:
    name = None if version >= _NULL_PROTOCOL_NAME else ""
    return JoinGroupResponse(error_code=error, protocol_name=name, member_id=member_id)


def joined(
    group: ClassicGroup,
    member: ClassicMember,
    version: int,
    leader_id: str | None = None,
    *,
    skip_assignment: bool = False,
) -> JoinGroupResponse:
    """The current generation, to a leader with all its members."""
    leader_id = group.leader_id if leader_id is None else leader_id
    name = group.protocol_name or ""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type or None,
        protocol_name=name if name or version < _NULL_PROTOCOL_NAME else None,
        leader=leader_id or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=members_for_leader(group) if leader_id == member.member_id else [],
    )


def members_for_leader(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """Everybody with the metadata from which the leader makes the assignment."""
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.metadata(group.protocol_name),
        )
        for member in group.members.values()
    ]
