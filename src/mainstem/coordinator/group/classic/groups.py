"""All classic groups of one partition of `__consumer_offsets`: requests, records, start and end."""

from typing import Any

from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.classic.group import ClassicGroup
from mainstem.coordinator.group.classic.join import Joins
from mainstem.coordinator.group.classic.leave import Leaves
from mainstem.coordinator.group.classic.phases import Phase
from mainstem.coordinator.group.classic.rebalance import Rebalances
from mainstem.coordinator.group.classic.record import read_group
from mainstem.coordinator.group.classic.sync import Syncs
from mainstem.coordinator.group.records.classic import GroupMetadataKey, GroupMetadataValue
from mainstem.coordinator.group.state import GroupState
from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from mainstem.protocol.apis.k15_describe_groups import DescribedGroup, DescribedGroupMember
from mainstem.protocol.errors import ErrorCode, KafkaError

# From this version of DescribeGroups on a group that is not there is an error (KIP-1043).
_NOT_FOUND_IS_AN_ERROR = 6


class ClassicGroups:
    """The classic part of the group coordinator."""

    def __init__(self, state: GroupState) -> None:
        self._state = state
        self.rebalances = rebalances = Rebalances(state)
        self.join_group = Joins(state, rebalances).join_group
        self.sync_group = Syncs(state, rebalances).sync_group
        self.leave_group = Leaves(state, rebalances).leave_group

    def heartbeat(self, request: HeartbeatRequest, token: Token, now_ms: int) -> None:
        """By far the most frequent request."""
        state = self._state
        group: Any = state.groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            state.effects.reply(token, HeartbeatResponse(error_code=self._heartbeat(group, request, now_ms)))
        elif group is None:
            state.effects.reply(token, HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            state.classic_bridge.heartbeat(group, request, token, now_ms)

    def try_heartbeat(self, request: HeartbeatRequest, now_ms: int) -> bool:
        """Take a heartbeat to which there is nothing to say; False, and it was not taken, if there is."""
        group = self._state.groups.get(request.group_id)
        if not isinstance(group, ClassicGroup) or group.phase is not Phase.STABLE:
            return False
        return self._heartbeat(group, request, now_ms) is ErrorCode.NONE

    def _heartbeat(self, group: ClassicGroup, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        phase = group.phase
        if phase is Phase.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        member = group.members.get(request.member_id)
        if member is None or request.group_instance_id is not None:
            try:
                group.check_member(request.member_id, request.group_instance_id)
            except KafkaError as error:
                return error.code
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        assert member is not None
        self._state.timers.schedule(member, now_ms + member.session_timeout_ms, member.on_session_end)
        return ErrorCode.REBALANCE_IN_PROGRESS if phase is Phase.PREPARING_REBALANCE else ErrorCode.NONE

    def describe(self, group_id: str, version: int) -> DescribedGroup:
        group = self._state.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            return _not_found(group_id, version, is_other_kind=group is not None)
        # What members say in which protocol is settled only when the group is stable.
        is_stable = group.phase is Phase.STABLE
        return DescribedGroup(
            group_id=group_id,
            group_state=group.phase.value,
            protocol_type=group.protocol_type,
            protocol_data=(group.protocol_name or "") if is_stable else "",
            members=[
                DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
                    member_assignment=member.assignment,
                )
                for member in group.members.values()
            ],
        )

    def create_simple(self, group_id: str) -> ClassicGroup:
        """A group that holds offsets which were committed without members; it has no record of its own."""
        group: ClassicGroup
        group = self._state.groups[group_id] = ClassicGroup(self._state, group_id)
        return group

    def end(self, group: ClassicGroup, error: ErrorCode) -> None:
        """The group stops being a classic one, or one of this coordinator: whoever waits in it asks again."""
        for token in self.rebalances.end(group):
            token.fail(error)

    # ---- the log

    def replay(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        groups = self._state.groups
        if value is not None:
            groups[key.group] = read_group(self._state, key.group, value)
        elif isinstance(groups.get(key.group), ClassicGroup):
            del groups[key.group]

    def loaded(self, now_ms: int) -> None:
        size_max = self._state.config.get("group.max.size")
        for group in self._classic_groups():
            for member in group.members.values():
                self.rebalances.watch(group, member)
                self.rebalances.extend_session(member, now_ms)
            if len(group.members) > size_max:
                reason = f"it has {len(group.members)} members, and {size_max} are allowed"
                self.rebalances.prepare(group, reason, now_ms)

    def unload(self, error: ErrorCode) -> None:
        for group in self._classic_groups():
            self.end(group, error)

    def _classic_groups(self) -> list[ClassicGroup]:
        return [group for group in self._state.groups.values() if isinstance(group, ClassicGroup)]


def _not_found(group_id: str, version: int, *, is_other_kind: bool) -> DescribedGroup:
    dead = DescribedGroup(group_id=group_id, group_state=Phase.DEAD.value)
    if version >= _NOT_FOUND_IS_AN_ERROR:
        dead.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        what = "is not a classic group" if is_other_kind else "not found"
        dead.error_message = f"Group {group_id} {what}."
    return dead
