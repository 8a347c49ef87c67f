"""A static member starts again: it joins without a member id, and its group.instance.id is a member already.

It gets a new id, and whoever still uses the old one is fenced. A stable group does not rebalance for that, as
long as its protocol stays the same: the newcomer takes over the assignment of the one before.
"""

from dataclasses import replace
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
    _answer_with(ErrorCode.FENCED_INSTANCE_ID, rebalances, group, old, old.member_id)
    new = replace(old, member_id=new_member_id, is_new=False)
    rebalances.watch(group, new)
    group.rename(old, new)
    state.timers.cancel(old)
    rebalances.extend_session(new, join.now_ms)
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


def _answer_with(
    error: ErrorCode, rebalances: Rebalances, group: ClassicGroup, member: ClassicMember, told_id: str
) -> None:
    """Whatever the member waits with."""
    rebalances.answer_join(group, member, join_error(error, told_id, member.join_version))
    rebalances.refuse_sync(member, error)


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
    _answer_with(ErrorCode.COORDINATOR_NOT_AVAILABLE, rebalances, group, new, "")
    group.set_protocols(new, old.protocols)
    old.assignment = new.assignment
    group.rename(new, old)
    if group.phase is Phase.STABLE:
        group.topics = group.compute_topics()
    state.timers.cancel(new)
    rebalances.extend_session(old, now_ms)
