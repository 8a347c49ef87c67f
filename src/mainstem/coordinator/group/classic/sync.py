"""SyncGroup: the leader hands in who owns what, and everybody learns it once it is written down."""

from functools import partial
from typing import Any

from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.classic.group import ClassicGroup
from mainstem.coordinator.group.classic.member import ClassicMember
from mainstem.coordinator.group.classic.phases import Phase
from mainstem.coordinator.group.classic.rebalance import Rebalances
from mainstem.coordinator.group.classic.record import write_group
from mainstem.coordinator.group.rebalance_times import RebalanceTimes
from mainstem.coordinator.group.state import GroupState
from mainstem.protocol.apis.k14_sync_group import SyncGroupRequest, SyncGroupResponse
from mainstem.protocol.errors import ErrorCode, KafkaError


class Syncs:
    def __init__(self, state: GroupState, rebalances: Rebalances) -> None:
        self._state = state
        self._rebalances = rebalances

    def sync_group(self, request: SyncGroupRequest, version: int, token: Token, now_ms: int) -> None:
        group: Any = self._state.groups.get(request.group_id)
        if group is None or group.state_name() == Phase.EMPTY.value:
            self._refuse(token, ErrorCode.UNKNOWN_MEMBER_ID)
        elif isinstance(group, ClassicGroup):
            self._sync(group, request, token, now_ms)
        else:
            self._state.classic_bridge.sync_group(group, request, version, token, now_ms)

    def _refuse(self, token: Token, error: ErrorCode) -> None:
        self._state.effects.reply(token, SyncGroupResponse(error_code=error))

    def _sync(self, group: ClassicGroup, request: SyncGroupRequest, token: Token, now_ms: int) -> None:
        try:
            _check(group, request)
        except KafkaError as error:
            self._refuse(token, error.code)
            return
        member = group.members[request.member_id]
        if group.phase is Phase.PREPARING_REBALANCE:
            self._refuse(token, ErrorCode.REBALANCE_IN_PROGRESS)
            return
        self._rebalances.synced(group, member.member_id)
        if group.phase is Phase.STABLE:
            self._answer(group, member, token)
            return
        if member.sync_token is not None:
            # It asked twice, and would wait for ever with one of the two.
            self._refuse(member.sync_token, ErrorCode.REBALANCE_IN_PROGRESS)
        member.sync_token = token
        if member.member_id == group.leader_id:
            self._assign(group, request, now_ms)

    def _answer(self, group: ClassicGroup, member: ClassicMember, token: Token) -> None:
        response = SyncGroupResponse(
            protocol_type=group.protocol_type or None,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        )
        self._state.effects.reply(token, response)

    def _assign(self, group: ClassicGroup, request: SyncGroupRequest, now_ms: int) -> None:
        """Whom the leader forgot owns nothing."""
        assignments = {entry.member_id: bytes(entry.assignment) for entry in request.assignments}
        failed = partial(self._assignment_lost, group, group.generation, group.rebalances, now_ms)
        self._state.effects.on_failure(failed)
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        write_group(self._state, group)
        group.move_to(Phase.STABLE, now_ms)
        for member in group.members.values():
            if member.sync_token is not None:
                self._answer(group, member, member.sync_token)
                member.sync_token = None
                self._rebalances.extend_session(member, now_ms)

    def _assignment_lost(
        self, group: ClassicGroup, generation: int, rebalances: RebalanceTimes, now_ms: int
    ) -> None:
        """It could not be written down: those who were to get it are told so, and all have to join again."""
        if group.generation != generation or group.phase is Phase.DEAD:
            return
        for member in group.members.values():
            member.assignment = b""
        # The rebalance has not ended after all; one that began since is the same.
        group.rebalances = rebalances
        if group.phase is Phase.COMPLETING_REBALANCE and group.leader_id in group.members:
            # The event broke off before it came to answers; the shell answers the leader.
            group.members[group.leader_id].sync_token = None
        if group.phase is Phase.STABLE:
            self._rebalances.prepare(group, "the assignment could not be written", now_ms)


def _check(group: ClassicGroup, request: SyncGroupRequest) -> None:
    if group.phase is Phase.DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if _differs(request.protocol_type, group.protocol_type) or _differs(
        request.protocol_name, group.protocol_name
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _differs(said: str | None, known: str | None) -> bool:
    return said is not None and bool(known) and said != known
