"""The clocks of a group's members: sessions, giving up partitions, and the two phases of a classic member."""

from collections.abc import Callable
from functools import partial

from mainstem.coordinator.group.consumer.member import UNREVOKED_PARTITIONS, Member
from mainstem.coordinator.group.consumer.settings import Settings
from mainstem.coordinator.group.state import GroupState

# Called with the group, the member, why, and the time.
Fence = Callable[[str, str, str, int], None]

_SESSION = "consumer-session"
_REBALANCE = "consumer-rebalance"
_JOIN = "consumer-join"
_SYNC = "consumer-sync"
# A removal that could not be written is tried again after this time, as in Kafka.
_RETRY_MS = 500


class Timeouts:
    """Removes members from their groups, through `fence`, when their time is up."""

    def __init__(self, state: GroupState, settings: Settings, fence: Fence) -> None:
        self._state = state
        self._settings = settings
        self._fence = fence

    def heard_from(self, group_id: str, member: Member, now_ms: int) -> None:
        """The member is alive: its session begins anew."""
        if member.classic is not None:
            timeout_ms = member.classic.session_timeout_ms
        else:
            timeout_ms = self._settings.of(group_id).session_timeout_ms
        self._schedule(_SESSION, group_id, member.member_id, now_ms + timeout_ms, "its session expired")

    def must_revoke(self, group_id: str, member: Member, now_ms: int) -> None:
        """The member has to leave its epoch within its rebalance timeout."""
        deadline_ms = now_ms + member.rebalance_timeout_ms
        self._schedule_revocation(group_id, member.member_id, member.member_epoch, deadline_ms)

    def has_revoked(self, group_id: str, member_id: str) -> None:
        self._state.timers.cancel((_REBALANCE, group_id, member_id))

    def must_join(self, group_id: str, member: Member, now_ms: int) -> None:
        """A classic member was told to join again; being told twice gives it no more time."""
        if (_JOIN, group_id, member.member_id) not in self._state.timers:
            deadline_ms = now_ms + member.rebalance_timeout_ms
            self._schedule(_JOIN, group_id, member.member_id, deadline_ms, "it did not join in time")

    def has_joined(self, group_id: str, member: Member, now_ms: int) -> None:
        """A classic member has joined and has to fetch its assignment."""
        if (_JOIN, group_id, member.member_id) in self._state.timers:
            self._state.timers.cancel((_JOIN, group_id, member.member_id))
            self._state.effects.on_failure(partial(self.must_join, group_id, member, now_ms))
        if (_SYNC, group_id, member.member_id) not in self._state.timers:
            self._state.effects.on_failure(partial(self.has_synced, group_id, member.member_id))
        self._must_sync(group_id, member, now_ms)

    def has_synced(self, group_id: str, member_id: str) -> None:
        self._state.timers.cancel((_SYNC, group_id, member_id))

    def is_gone(self, group_id: str, member: Member, now_ms: int) -> None:
        """The member is removed. If that fails it has all its time again, for whatever it had to do."""
        armed = [
            again for kind, again in self._all() if (kind, group_id, member.member_id) in self._state.timers
        ]
        for again in armed:
            self._state.effects.on_failure(partial(again, group_id, member, now_ms))
        self.forget(group_id, member.member_id)

    def forget(self, group_id: str, member_id: str) -> None:
        for kind, _ in self._all():
            self._state.timers.cancel((kind, group_id, member_id))

    def _all(self) -> tuple[tuple[str, Callable[[str, Member, int], None]], ...]:
        """The kinds of timers, and what starts each."""
        return (
            (_SESSION, self.heard_from),
            (_REBALANCE, self.must_revoke),
            (_JOIN, self.must_join),
            (_SYNC, self._must_sync),
        )

    def _must_sync(self, group_id: str, member: Member, now_ms: int) -> None:
        deadline_ms = now_ms + member.rebalance_timeout_ms
        self._schedule(_SYNC, group_id, member.member_id, deadline_ms, "it did not sync in time")

    def _schedule(self, kind: str, group_id: str, member_id: str, deadline_ms: int, why: str) -> None:
        key = kind, group_id, member_id
        self._state.timers.schedule(key, deadline_ms, partial(self._expired, key, why))

    def _expired(self, key: tuple[str, str, str], why: str, now_ms: int) -> None:
        # The timer is used up, and the member must not stay for ever because one append failed.
        self._state.effects.on_failure(partial(self._schedule, *key, now_ms + _RETRY_MS, why))
        _, group_id, member_id = key
        self._fence(group_id, member_id, why, now_ms)

    def _schedule_revocation(self, group_id: str, member_id: str, epoch: int, deadline_ms: int) -> None:
        callback = partial(self._revocation_expired, group_id, member_id, epoch)
        self._state.timers.schedule((_REBALANCE, group_id, member_id), deadline_ms, callback)

    def _revocation_expired(self, group_id: str, member_id: str, epoch: int, now_ms: int) -> None:
        group = self._state.groups.get(group_id)
        member = group.members.get(member_id) if group is not None and group.kind == "consumer" else None
        if member is not None and member.member_epoch == epoch and member.state == UNREVOKED_PARTITIONS:
            again = partial(self._schedule_revocation, group_id, member_id, epoch, now_ms + _RETRY_MS)
            self._state.effects.on_failure(again)
            self._fence(group_id, member_id, "it did not give up its partitions in time", now_ms)
