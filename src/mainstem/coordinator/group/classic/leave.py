"""LeaveGroup: one member goes, or from version 3 several, each with its own answer."""

from typing import Any

from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.classic.group import ClassicGroup
from mainstem.coordinator.group.classic.phases import Phase
from mainstem.coordinator.group.classic.rebalance import Rebalances
from mainstem.coordinator.group.state import GroupState
from mainstem.protocol.apis.k13_leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from mainstem.protocol.errors import ErrorCode, KafkaError

# From this version on a request names several members.
_BATCHES = 3


def leaving_members(request: LeaveGroupRequest, version: int) -> list[MemberIdentity]:
    return request.members if version >= _BATCHES else [MemberIdentity(request.member_id)]


def leave_response(members: list[MemberResponse], version: int) -> LeaveGroupResponse:
    """Before there were batches, the error of the one member was that of the request."""
    if version >= _BATCHES:
        return LeaveGroupResponse(members=members)
    return LeaveGroupResponse(error_code=members[0].error_code)


class Leaves:
    def __init__(self, state: GroupState, rebalances: Rebalances) -> None:
        self._state = state
        self._rebalances = rebalances

    def leave_group(self, request: LeaveGroupRequest, version: int, token: Token, now_ms: int) -> None:
        group: Any = self._state.groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            self._leave(group, request, version, token, now_ms)
        elif group is None:
            unknown = [
                _answer(member, ErrorCode.UNKNOWN_MEMBER_ID) for member in leaving_members(request, version)
            ]
            self._state.effects.reply(token, leave_response(unknown, version))
        else:
            self._state.classic_bridge.leave_group(group, request, version, token, now_ms)

    def _leave(
        self, group: ClassicGroup, request: LeaveGroupRequest, version: int, token: Token, now_ms: int
    ) -> None:
        if group.phase is Phase.DEAD:
            response = LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
            self._state.effects.reply(token, response)
            return
        answers = [
            _answer(member, self._remove(group, member)) for member in leaving_members(request, version)
        ]
        left = [answer.member_id for answer in answers if not answer.error_code]
        if left and group.phase is not Phase.EMPTY:
            self._rebalances.prepare_or_complete(group, f"{', '.join(left)} left", now_ms)
        self._state.effects.reply(token, leave_response(answers, version))

    def _remove(self, group: ClassicGroup, leaving: MemberIdentity) -> ErrorCode:
        member_id, instance_id = leaving.member_id, leaving.group_instance_id
        if not member_id:
            # An administrator removes a static member, whose id it does not know.
            known = group.static_members.get(instance_id) if instance_id is not None else None
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = known
        elif member_id not in group.pending_joins:
            try:
                group.check_member(member_id, instance_id)
            except KafkaError as error:
                return error.code
        self._rebalances.remove(group, member_id)
        return ErrorCode.NONE


def _answer(member: MemberIdentity, error: ErrorCode) -> MemberResponse:
    return MemberResponse(member.member_id, member.group_instance_id, error)
