"""The consumer protocol (KIP-848): members only ever send heartbeats, and the answers tell them what to own.

Nothing is changed before a request is known to be right: a refused heartbeat leaves no trace.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.classic import ClassicGroup
from mainstem.coordinator.group.consumer import checks
from mainstem.coordinator.group.consumer.classic_bridge import ClassicBridge
from mainstem.coordinator.group.consumer.describe import described_group
from mainstem.coordinator.group.consumer.group import EMPTY, ConsumerGroup
from mainstem.coordinator.group.consumer.member import (
    LEAVE_EPOCH,
    STABLE,
    STATIC_LEAVE_EPOCH,
    UNREVOKED_PARTITIONS,
    Member,
    Partitions,
    away,
)
from mainstem.coordinator.group.consumer.membership import Membership
from mainstem.coordinator.group.consumer.pattern_matching import MaySee
from mainstem.coordinator.group.consumer.upgrade import Upgrades
from mainstem.coordinator.group.state import Client, GroupState
from mainstem.protocol.apis.k68_consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from mainstem.protocol.apis.k69_consumer_group_describe import DescribedGroup
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.protocol.uuids import uuid_to_text


def _may_see_all(topic: str) -> bool:
    return True


class ConsumerGroups:
    """All consumer groups of one machine."""

    def __init__(self, state: GroupState) -> None:
        self._state = state
        self._membership = Membership(state)
        self._journal = self._membership.journal
        self._timeouts = self._membership.timeouts
        self._settings = self._membership.settings
        membership = self._membership
        self._upgrades = Upgrades(state, self._journal, membership.hashes, self._timeouts)
        self.classic_bridge = ClassicBridge(state, membership)

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        version: int,
        client: Client,
        token: Token,
        now_ms: int,
        may_see: MaySee = _may_see_all,
    ) -> None:
        """`may_see` says of each topic that a pattern matches whether this client may know of it."""
        member = self._idle_member(request, client, now_ms)
        if member is not None:
            self._timeouts.heard_from(request.group_id, member, now_ms)
            interval_ms = self._settings.of(request.group_id).heartbeat_interval_ms
            self._state.effects.reply(token, _response(member, interval_ms))
            return
        try:
            assignors = self._state.config.get("group.consumer.assignors")
            checks.check_request(request, version, assignors)
            if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
                response = self._leave(request, now_ms)
            else:
                response = self._beat(request, client, may_see, now_ms)
        except KafkaError as error:
            response = ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
        self._state.effects.reply(token, response)

    def try_heartbeat(self, request: ConsumerGroupHeartbeatRequest, client: Client, now_ms: int) -> bool:
        """Take a heartbeat to which there is nothing new to say; False, and it was not taken, if there is."""
        member = self._idle_member(request, client, now_ms)
        if member is None:
            return False
        self._timeouts.heard_from(request.group_id, member, now_ms)
        return True

    def describe(self, group_id: str) -> DescribedGroup:
        group = self._state.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return described_group(group, self._state.topics, self._settings.default_assignor())
        what = "not found" if group is None else "not a consumer group"
        return DescribedGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} is {what}.",
        )

    def replay(self, key: Any, value: Any) -> None:
        self._journal.replay(key, value)

    def loaded(self, now_ms: int) -> None:
        """Every member gets a full session to show itself."""
        for group in self._state.groups.values():
            if isinstance(group, ConsumerGroup):
                group.go_by_clock(now_ms)
                for member in group.members.values():
                    self._timeouts.heard_from(group.group_id, member, now_ms)
                    if member.state == UNREVOKED_PARTITIONS:
                        self._timeouts.must_revoke(group.group_id, member, now_ms)

    # ---- heartbeats

    def _idle_member(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, now_ms: int
    ) -> Member | None:
        """The member that sent it, if this is what nearly all heartbeats are: nothing new on either side."""
        group = self._state.groups.get(request.group_id)
        if type(group) is not ConsumerGroup:
            return None
        member = group.members.get(request.member_id)
        if (
            member is not None
            and request.member_epoch == member.member_epoch == group.assignment_epoch == group.epoch
            and member.state == STABLE
            and request.topic_partitions is None
            and request.subscribed_topic_names is None
            and request.subscribed_topic_regex is None
            and request.rebalance_timeout_ms == -1
            and request.instance_id == member.instance_id
            and request.rack_id is None
            and request.server_assignor is None
            and member.client_id == client.client_id
            and member.client_host == client.host
            and member.classic is None
            and group.topics_version == self._state.topics.version
            and not (group.patterns and self._membership.patterns.is_refresh_needed(group, now_ms))
        ):
            return member
        return None

    def _beat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, may_see: MaySee, now_ms: int
    ) -> ConsumerGroupHeartbeatResponse:
        is_joining = request.member_epoch == 0
        group, begin = self._group_of(request.group_id, is_joining, now_ms)
        checks.check_size(group, request.member_id, self._state.config.get("group.consumer.max.size"))
        member_id = request.member_id or self._new_member_id()
        if request.instance_id is None or (is_joining and request.instance_id not in group.static_members):
            replaced = None
            former = group.members.get(member_id) or (
                Member(member_id) if is_joining else group.member(member_id)
            )
            checks.check_epoch(former, request.member_epoch, request.topic_partitions)
        else:
            former, replaced = self._static_member(group, request, member_id)
        member = _updated(former, request, client)
        checks.check_state(member, request.topic_partitions)
        self._membership.patterns.check(group, former, member)

        # From here on nothing is refused.
        begin()
        self._journal.add_group(group)
        if replaced is not None:
            self._journal.replace_member(group, replaced, former)
        has_changed = self._membership.put(group, former, member, may_see, now_ms)
        member = self._membership.advance(group, member, has_changed, request.topic_partitions, now_ms)
        self._timeouts.heard_from(group.group_id, member, now_ms)
        response = _response(member, self._membership.targets.next_heartbeat_ms(group, member, now_ms))
        if is_joining or _is_full(request) or former.assigned != member.assigned:
            response.assignment = _assignment(member.assigned)
        return response

    def _group_of(
        self, group_id: str, is_joining: bool, now_ms: int
    ) -> tuple[ConsumerGroup, Callable[[], None]]:
        """The group, and what has to be written before it when it takes the place of a classic one."""
        group = self._state.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group, _nothing
        if is_joining and group is None:
            return self._journal.new_group(group_id), _nothing
        if is_joining and group is not None and group.state_name() == EMPTY:
            return self._journal.new_group(group_id), group.write_tombstones
        if is_joining and isinstance(group, ClassicGroup):
            upgraded = self._upgrades.consumer_group(group)
            return upgraded, partial(self._upgrades.run, group, upgraded, now_ms)
        what = "not found" if group is None else "not a consumer group"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is {what}.")

    def _static_member(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: str
    ) -> tuple[Member, Member | None]:
        """The static member that asks, and the one whose place it takes."""
        instance_id = request.instance_id
        assert instance_id is not None
        if request.member_epoch != 0:
            member = checks.static_member(group, instance_id, member_id)
            checks.check_epoch(member, request.member_epoch, request.topic_partitions)
            return member, None
        existing = group.static_member(instance_id)
        assert existing is not None
        if existing.classic is None:
            checks.check_released(existing, member_id)
        return replace(existing, member_id=member_id, member_epoch=0, previous_member_epoch=0), existing

    def _leave(self, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> ConsumerGroupHeartbeatResponse:
        group, _ = self._group_of(request.group_id, False, now_ms)
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = checks.static_member(group, request.instance_id, request.member_id)
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            # It is expected back before its session ends.
            self._journal.put_current(group, away(member))
        else:
            self._membership.remove(group, [member], now_ms)
        return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)

    def _new_member_id(self) -> str:
        return uuid_to_text(UUID(self._state.new_id()).bytes)


def _response(member: Member, heartbeat_interval_ms: int) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms,
    )


def _nothing() -> None:
    pass


def _updated(member: Member, request: ConsumerGroupHeartbeatRequest, client: Client) -> Member:
    """The member with what the request says; what it leaves out stays as it was."""
    changes: dict[str, Any] = {"client_id": client.client_id, "client_host": client.host, "classic": None}
    if request.instance_id is not None:
        changes["instance_id"] = request.instance_id
    if request.rack_id is not None:
        changes["rack_id"] = request.rack_id
    if request.rebalance_timeout_ms != -1:
        changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.subscribed_topic_names is not None:
        changes["subscribed_topic_names"] = frozenset(request.subscribed_topic_names)
    if request.subscribed_topic_regex is not None:
        changes["subscribed_topic_regex"] = request.subscribed_topic_regex
    if request.server_assignor is not None:
        changes["server_assignor"] = request.server_assignor
    return replace(member, **changes)


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Sent after an error as well as when joining: the member wants to hear all of its assignment."""
    return (
        request.rebalance_timeout_ms != -1
        and request.topic_partitions is not None
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
    )


def _assignment(partitions: Partitions) -> Assignment:
    return Assignment([TopicPartitions(topic_id, sorted(epochs)) for topic_id, epochs in partitions.items()])
