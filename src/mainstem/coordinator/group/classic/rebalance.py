"""How a classic group moves from phase to phase, and what its timers do.

Preparing: members join, until all have or the time is over. Completing: they wait for the leader's
assignment, which `sync.py` makes durable. A member whose session ends, or that does not come along in time,
is removed.
"""

import logging
from functools import partial
from typing import Final

from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.classic.group import ClassicGroup
from mainstem.coordinator.group.classic.member import ClassicMember, PendingMember
from mainstem.coordinator.group.classic.phases import PREVIOUS, Phase
from mainstem.coordinator.group.classic.record import write_group
from mainstem.coordinator.group.classic.responses import join_error, joined
from mainstem.coordinator.group.state import GroupState
from mainstem.protocol.apis.k11_join_group import JoinGroupResponse
from mainstem.protocol.apis.k14_sync_group import SyncGroupResponse
from mainstem.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

# A client that gave up waiting asks again with a new id; what it left behind goes after this time.
_NEW_MEMBER_TIMEOUT_MS: Final = 5 * 60 * 1000


class Rebalances:
    """Shared by the modules of the requests."""

    def __init__(self, state: GroupState) -> None:
        self._state = state

    # ---- sessions

    def watch(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Say what the end of this member's session leads to, once, so that heartbeats need not."""
        member.on_session_end = partial(self._session_ended, group, member)

    def extend_session(self, member: ClassicMember, now_ms: int) -> None:
        self._state.timers.schedule(member, now_ms + member.session_timeout_ms, member.on_session_end)

    def extend_first_session(self, member: ClassicMember, now_ms: int) -> None:
        self._state.timers.schedule(member, now_ms + _NEW_MEMBER_TIMEOUT_MS, member.on_session_end)

    def _session_ended(self, group: ClassicGroup, member: ClassicMember, now_ms: int) -> None:
        if group.members.get(member.member_id) is not member or member.may_be_silent():
            return
        logger.info("group %s removes member %s: its session ended", group.group_id, member.member_id)
        self.remove(group, member.member_id)
        if group.phase is Phase.PREPARING_REBALANCE:
            if group.has_all_joined():
                self.complete_join(group, now_ms)
        elif group.phase in (Phase.STABLE, Phase.COMPLETING_REBALANCE):
            self.prepare(group, f"the session of {member.member_id} ended", now_ms)

    def expect(self, group: ClassicGroup, member_id: str, timeout_ms: int, now_ms: int) -> None:
        """Somebody was given an id and must join with it in time."""
        pending = group.pending_joins[member_id] = PendingMember(member_id)
        self._state.timers.schedule(
            pending, now_ms + timeout_ms, partial(self._pending_member_failed, group, pending)
        )

    def _pending_member_failed(self, group: ClassicGroup, pending: PendingMember, now_ms: int) -> None:
        if group.pending_joins.get(pending.member_id) is pending:
            self.remove(group, pending.member_id)
            if group.phase is Phase.PREPARING_REBALANCE and group.has_all_joined():
                self.complete_join(group, now_ms)

    # ---- members

    def remove(self, group: ClassicGroup, member_id: str) -> None:
        """Take a member out, and tell it so if it waits."""
        pending = group.pending_joins.get(member_id)
        if pending is not None:
            self._state.timers.cancel(pending)
        member = group.remove(member_id)
        if member is None:
            return
        self._state.timers.cancel(member)
        if member.join_token is not None:
            error = join_error(ErrorCode.UNKNOWN_MEMBER_ID, "", member.join_version)
            self._state.effects.reply(member.join_token, error)
            member.join_token = None
        self.refuse_sync(member, ErrorCode.UNKNOWN_MEMBER_ID)

    def answer_join(self, group: ClassicGroup, member: ClassicMember, response: JoinGroupResponse) -> None:
        if member.join_token is not None:
            self._state.effects.reply(member.join_token, response)
            member.join_token = None
            group.awaiting_join -= 1

    def refuse_sync(self, member: ClassicMember, error: ErrorCode) -> bool:
        """Whether the member was waiting with a sync."""
        token, member.sync_token = member.sync_token, None
        if token is not None:
            self._state.effects.reply(token, SyncGroupResponse(error_code=error))
        return token is not None

    # ---- the join phase

    def prepare_or_complete(self, group: ClassicGroup, reason: str, now_ms: int) -> None:
        """Something about the members changed."""
        if group.phase in PREVIOUS[Phase.PREPARING_REBALANCE]:
            self.prepare(group, reason, now_ms)
        else:
            self.complete_join_if_all_joined(group, now_ms)

    def prepare(self, group: ClassicGroup, reason: str, now_ms: int) -> None:
        """Begin a rebalance: everybody has to join."""
        if group.phase is Phase.COMPLETING_REBALANCE:
            self._refuse_syncs(group, now_ms)
        group.pending_syncs.clear()
        self._state.timers.cancel(group.sync_timer)
        is_first = group.phase is Phase.EMPTY
        logger.info("group %s of generation %d rebalances: %s", group.group_id, group.generation, reason)
        group.move_to(Phase.PREPARING_REBALANCE, now_ms)
        if is_first:
            group.has_new_members = False
            delay_ms = self._initial_delay_ms()
            remaining_ms = max(group.rebalance_timeout_ms() - delay_ms, 0)
            self._wait_for_more(group, delay_ms, remaining_ms, now_ms)
        elif group.has_all_joined():
            self.complete_join(group, now_ms)
        else:
            self._wait_for_all(group, now_ms)

    def _initial_delay_ms(self) -> int:
        delay_ms: int = self._state.config.get("group.initial.rebalance.delay.ms")
        return delay_ms

    def _refuse_syncs(self, group: ClassicGroup, now_ms: int) -> None:
        for member in group.members.values():
            member.assignment = b""
            if self.refuse_sync(member, ErrorCode.REBALANCE_IN_PROGRESS):
                self.extend_session(member, now_ms)

    def _wait_for_all(self, group: ClassicGroup, now_ms: int) -> None:
        deadline_ms = now_ms + group.rebalance_timeout_ms()
        self._state.timers.schedule(group.join_timer, deadline_ms, partial(self.complete_join, group))

    def _wait_for_more(self, group: ClassicGroup, delay_ms: int, remaining_ms: int, now_ms: int) -> None:
        """A group that begins gives others time to come, before its first members own everything."""
        callback = partial(self._initial_delay_over, group, delay_ms, remaining_ms)
        self._state.timers.schedule(group.join_timer, now_ms + delay_ms, callback)

    def _initial_delay_over(self, group: ClassicGroup, delay_ms: int, remaining_ms: int, now_ms: int) -> None:
        if group.has_new_members and remaining_ms:
            group.has_new_members = False
            next_delay_ms = min(self._initial_delay_ms(), remaining_ms)
            self._wait_for_more(group, next_delay_ms, max(remaining_ms - delay_ms, 0), now_ms)
        else:
            self.complete_join(group, now_ms)

    def complete_join_if_all_joined(self, group: ClassicGroup, now_ms: int) -> None:
        """The first rebalance lasts as long as its delay, whoever has joined."""
        if (
            group.phase is Phase.PREPARING_REBALANCE
            and group.previous_phase is not Phase.EMPTY
            and group.has_all_joined()
        ):
            self.complete_join(group, now_ms)

    def complete_join(self, group: ClassicGroup, now_ms: int) -> None:
        """Whoever has not joined is left behind; the others are the next generation."""
        if group.phase is not Phase.PREPARING_REBALANCE:
            return
        self._state.timers.cancel(group.join_timer)
        late = [
            member.member_id
            for member in group.members.values()
            if member.join_token is None and member.group_instance_id is None
        ]
        for member_id in late:
            logger.info("group %s removes member %s: it did not join again", group.group_id, member_id)
            self.remove(group, member_id)
        if not group.elect_joined_leader() and group.members:
            # Only static members are left, none of which has come back: their sessions decide.
            self._wait_for_all(group, now_ms)
            return
        group.next_generation(now_ms)
        if not group.members:
            self._write_empty(group)
            return
        for member in group.members.values():
            self.answer_join(group, member, joined(group, member, member.join_version))
            self.extend_session(member, now_ms)
            member.is_new = False
            group.pending_syncs.add(member.member_id)
        deadline_ms = now_ms + group.rebalance_timeout_ms()
        callback = partial(self._sync_time_over, group, group.generation)
        self._state.timers.schedule(group.sync_timer, deadline_ms, callback)

    def _write_empty(self, group: ClassicGroup) -> None:
        """If this cannot be written the group stays empty here all the same. After a restart the former
        generation would be back, with members that send no heartbeats and go in their turn.
        """
        write_group(self._state, group)
        self._state.effects.on_failure(
            partial(logger.warning, "group %s is empty, but that is not written down", group.group_id)
        )

    # ---- the sync phase

    def synced(self, group: ClassicGroup, member_id: str) -> None:
        group.pending_syncs.discard(member_id)
        if not group.pending_syncs:
            self._state.timers.cancel(group.sync_timer)

    def _sync_time_over(self, group: ClassicGroup, generation: int, now_ms: int) -> None:
        if generation != group.generation or group.phase not in (Phase.COMPLETING_REBALANCE, Phase.STABLE):
            return
        late = sorted(group.pending_syncs)
        if late:
            for member_id in late:
                self.remove(group, member_id)
            self.prepare(group, f"{', '.join(late)} did not sync in time", now_ms)

    # ---- the end of a group

    def end(self, group: ClassicGroup) -> list[Token]:
        """The group is no more, or not here: forgets its timers and hands back those who wait in it."""
        timers = self._state.timers
        timers.cancel(group.join_timer)
        timers.cancel(group.sync_timer)
        for pending in group.pending_joins.values():
            timers.cancel(pending)
        waiting: list[Token] = []
        for member in group.members.values():
            timers.cancel(member)
            waiting += [token for token in (member.join_token, member.sync_token) if token is not None]
            member.join_token = member.sync_token = None
        group.awaiting_join = 0
        group.phase = Phase.DEAD
        return waiting

    def forget(self, group: ClassicGroup) -> None:
        """A new group could not be written down. Whoever waits in it asks again; its timers would write over
        the record of the next group of this name.
        """
        if self._state.groups.get(group.group_id) is group:
            del self._state.groups[group.group_id]
        for token in self.end(group):
            token.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)
