"""JoinGroup: who may take part, who first gets an id, who is told the current generation and who starts a
rebalance.
"""

from functools import partial
from typing import Any, Final

from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.classic.group import ClassicGroup
from mainstem.coordinator.group.classic.joining import Joining, wait_with
from mainstem.coordinator.group.classic.member import ClassicMember
from mainstem.coordinator.group.classic.phases import Phase
from mainstem.coordinator.group.classic.rebalance import Rebalances
from mainstem.coordinator.group.classic.record import write_new_group
from mainstem.coordinator.group.classic.responses import join_error, joined
from mainstem.coordinator.group.classic.static_join import rejoin_static_member
from mainstem.coordinator.group.state import Client, GroupState
from mainstem.protocol.apis.k11_join_group import JoinGroupRequest
from mainstem.protocol.errors import ErrorCode, KafkaError

# The first version whose clients can be asked to join again with the id that they are given (KIP-394).
_MEMBER_ID_REQUIRED: Final = 4
# What a string of the protocol holds, less the hyphen and the UUID that make a member id of a name.
_NAME_BYTES_MAX: Final = 32_767 - 37


class Joins:
    def __init__(self, state: GroupState, rebalances: Rebalances) -> None:
        self._state = state
        self._rebalances = rebalances

    def join_group(
        self, request: JoinGroupRequest, version: int, client: Client, token: Token, now_ms: int
    ) -> None:
        config = self._state.config
        shortest_ms = config.get("group.min.session.timeout.ms")
        longest_ms = config.get("group.max.session.timeout.ms")
        join = Joining(request, version, client, token, now_ms)
        if not shortest_ms <= request.session_timeout_ms <= longest_ms:
            self._refuse(join, ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id)
            return
        if not request.member_id and len(join.name.encode()) > _NAME_BYTES_MAX:
            # Neither this member nor its leader could be told such an id. Kafka answers the same, but only
            # after it has let the member in.
            self._refuse(join, ErrorCode.UNKNOWN_SERVER_ERROR, "")
            return
        group: Any = self._state.groups.get(request.group_id)
        if group is None or isinstance(group, ClassicGroup):
            self._join(join, group)
        elif group.state_name() != Phase.EMPTY.value:
            self._state.classic_bridge.join_group(group, request, version, client, token, now_ms)
        else:
            if not request.member_id:
                group.write_tombstones()  # an empty group may change its kind
            self._join(join, None)

    def _refuse(self, join: Joining, error: ErrorCode, member_id: str) -> None:
        self._state.effects.reply(join.token, join_error(error, member_id, join.version))

    def _join(self, join: Joining, group: ClassicGroup | None) -> None:
        request = join.request
        if group is not None:
            self._join_group(join, group)
        elif request.member_id:
            self._refuse(join, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
        else:
            group = ClassicGroup(self._state, request.group_id, join.now_ms)
            self._state.effects.on_failure(partial(self._rebalances.forget, group))
            self._state.groups[request.group_id] = group
            # A group that was asked for stays, with offsets or without, until it is deleted or has expired.
            write_new_group(self._state, group)
            self._join_group(join, group)

    def _join_group(self, join: Joining, group: ClassicGroup) -> None:
        request = join.request
        if not self._has_room_for(group, request.member_id):
            self._rebalances.remove(group, request.member_id)
            self._refuse(join, ErrorCode.GROUP_MAX_SIZE_REACHED, "")
            self._rebalances.complete_join_if_all_joined(group, join.now_ms)
        elif group.phase is Phase.DEAD:
            self._refuse(join, ErrorCode.COORDINATOR_NOT_AVAILABLE, request.member_id)
        elif not group.supports(request.protocol_type, [name for name, _ in join.protocols]):
            self._refuse(join, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        elif not request.member_id:
            self._join_new_member(join, group)
        elif request.member_id in group.pending_joins and request.group_instance_id is None:
            self._add_member(join, group, request.member_id)
        else:
            self._rejoin(join, group)

    def _has_room_for(self, group: ClassicGroup, member_id: str) -> bool:
        """While a group rebalances the first to join stay; whoever is above the limit goes, members too."""
        size_max = self._state.config.get("group.max.size")
        if group.phase is Phase.PREPARING_REBALANCE:
            member = group.members.get(member_id)
            is_waiting = member is not None and member.join_token is not None
            return is_waiting or group.awaiting_join < size_max
        if group.phase in (Phase.COMPLETING_REBALANCE, Phase.STABLE):
            return member_id in group.members or len(group.members) < size_max
        return True

    def _join_new_member(self, join: Joining, group: ClassicGroup) -> None:
        request = join.request
        instance_id = request.group_instance_id
        member_id = f"{join.name}-{self._state.new_id()}"
        if instance_id is not None and instance_id in group.static_members:
            old = group.members[group.static_members[instance_id]]
            rejoin_static_member(self._state, self._rebalances, join, group, old, member_id)
        elif instance_id is None and join.version >= _MEMBER_ID_REQUIRED:
            self._rebalances.expect(group, member_id, request.session_timeout_ms, join.now_ms)
            self._refuse(join, ErrorCode.MEMBER_ID_REQUIRED, member_id)
        else:
            self._add_member(join, group, member_id)

    def _add_member(self, join: Joining, group: ClassicGroup, member_id: str) -> None:
        request = join.request
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            join.client.client_id,
            join.client.host,
            join.rebalance_timeout_ms,
            request.session_timeout_ms,
            join.protocols,
            is_new=True,
            join_token=join.token,
            join_version=join.version,
        )
        if group.phase is Phase.PREPARING_REBALANCE and group.previous_phase is Phase.EMPTY:
            group.has_new_members = True
        pending = group.pending_joins.get(member_id)
        if pending is not None:
            self._state.timers.cancel(pending)
        self._rebalances.watch(group, member)
        group.add(member, request.protocol_type)
        self._rebalances.extend_first_session(member, join.now_ms)
        reason = join.reason(f"{member_id} joins")
        self._rebalances.prepare_or_complete(group, reason, join.now_ms)

    def _rejoin(self, join: Joining, group: ClassicGroup) -> None:
        """A member joins that was one before: to take part in a rebalance, to start one, or because an
        answer was lost.
        """
        request = join.request
        try:
            group.check_member(request.member_id, request.group_instance_id)
        except KafkaError as error:
            self._refuse(join, error.code, request.member_id)
            return
        member = group.members[request.member_id]
        is_same = member.protocols == join.protocols
        is_leader = request.member_id == group.leader_id
        if (group.phase is Phase.COMPLETING_REBALANCE and is_same) or (
            group.phase is Phase.STABLE and is_same and not is_leader
        ):
            self._state.effects.reply(join.token, joined(group, member, join.version))
            return
        # A leader may have reasons of its own to rebalance a stable group, such as a topic's new partitions.
        wait_with(self._state, join, group, member)
        self._rebalances.prepare_or_complete(group, join.reason(f"{member.member_id} rejoins"), join.now_ms)
