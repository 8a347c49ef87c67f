"""A static member starts again: it joins without a member id, and its group.instance.id is a member already.

It gets a new id, and whoever still uses the old one is fenced. A stable group does not rebalance for that, as
long as its protocol stays the same: the newcomer takes over the assignment of the one before.
"""

from functools import partial
from typing import Final

from mainstem.coordinator.group.classic.group import ClassicGroup
from mainstem.coordinator.group.classic.joining import Joining, wait_with
from mainstem.coordinator.group.classic.member import ClassicMember
from mainstem.coordinator.group.classic.phases import Phase
from mainstem.coordinator.group.classic.rebalance import Rebalances
from mainstem.coordinator.group.classic.record import write_group
from mainstem.coordinator.group.classic.responses import join_error, joined
from mainstem.coordinator.group.state import GroupState
from mainstem.protocol.apis.k14_sync_group import SyncGroupResponse
from mainstem.protocol.errors import ErrorCode

# From this version on a leader can be told that there is nothing to assign (KIP-814).
_SKIP_ASSIGNMENT: Final = 9


def rejoin_static_member(
    state: GroupState,
    rebalances: Rebalances,
    join: Joining,
    group: ClassicGroup,
    old: ClassicMember,
    new_member_id: str,
) -> None:
    old_leader_id = group.leader_id
    _fence(state, rebalances, group, old)
    new = _replace(state, rebalances, group, old, new_member_id, join.now_ms)
    wait_with(state, join, group, new)
    if group.phase is Phase.STABLE and group.select_protocol() == group.protocol_name:
        state.effects.on_failure(partial(_go_back, state, rebalances, group, old, new, join.now_ms))
        group.topics = group.compute_topics()
        write_group(state, group)
        if join.version >= _SKIP_ASSIGNMENT:
            is_leader = group.leader_id == new_member_id
            response = joined(group, new, join.version, skip_assignment=is_leader)
        else:
            # With its old id as the leader it takes itself for a follower, and does not assign anew.
            response = joined(group, new, join.version, old_leader_id)
        rebalances.answer_join(group, new, response)
    elif group.phase in (Phase.STABLE, Phase.COMPLETING_REBALANCE):
        # The leader may have the old id in its assignment already: the new one would get nothing.
        reason = join.reason(f"{new_member_id} replaces {old.member_id}")
        rebalances.prepare(group, reason, join.now_ms)
    else:
        rebalances.complete_join_if_all_joined(group, join.now_ms)


def _fence(state: GroupState, rebalances: Rebalances, group: ClassicGroup, old: ClassicMember) -> None:
    error = ErrorCode.FENCED_INSTANCE_ID
    rebalances.answer_join(group, old, join_error(error, old.member_id, old.join_version))
    if old.sync_token is not None:
        state.effects.reply(old.sync_token, SyncGroupResponse(error_code=error))
        old.sync_token = None


def _replace(
    state: GroupState,
    rebalances: Rebalances,
    group: ClassicGroup,
    old: ClassicMember,
    new_member_id: str,
    now_ms: int,
) -> ClassicMember:
    """The same member under another id."""
    new = ClassicMember(
        new_member_id,
        old.group_instance_id,
        old.client_id,
        old.client_host,
        old.rebalance_timeout_ms,
        old.session_timeout_ms,
        old.protocols,
        old.assignment,
    )
    rebalances.watch(group, new)
    group.rename(old, new)
    state.timers.cancel(old)
    rebalances.extend_session(new, now_ms)
    return new


def _go_back(
    state: GroupState,
    rebalances: Rebalances,
    group: ClassicGroup,
    old: ClassicMember,
    new: ClassicMember,
    now_ms: int,
) -> None:
    """The new id could not be written down: the old one is the member again."""
    if group.members.get(new.member_id) is not new:
        return
    unavailable = ErrorCode.COORDINATOR_NOT_AVAILABLE
    rebalances.answer_join(group, new, join_error(unavailable, "", new.join_version))
    if new.sync_token is not None:
        state.effects.reply(new.sync_token, SyncGroupResponse(error_code=unavailable))
        new.sync_token = None
    group.set_protocols(new, old.protocols)
    old.assignment = new.assignment
    group.rename(new, old)
    if group.phase is Phase.STABLE:
        group.topics = group.compute_topics()
    state.timers.cancel(new)
    rebalances.extend_session(old, now_ms)
