"""Members of the classic protocol inside a consumer group: the broker assigns for them too.

To them the group looks like a classic one of which they are never the leader; the member epoch is their
generation. A heartbeat tells them when there is something to revoke or to get, and then they join and sync.
"""

from typing import Final
from uuid import UUID

from msgspec.structs import replace

from mainstem.coordinator.effects import Token
from mainstem.coordinator.group.classic.leave import leave_response, leaving_members
from mainstem.coordinator.group.classic.member import protocols_of
from mainstem.coordinator.group.classic.responses import join_error
from mainstem.coordinator.group.consumer import checks
from mainstem.coordinator.group.consumer.group import ConsumerGroup
from mainstem.coordinator.group.consumer.member import (
    UNRELEASED_PARTITIONS,
    UNREVOKED_PARTITIONS,
    Member,
)
from mainstem.coordinator.group.consumer.membership import Membership
from mainstem.coordinator.group.embedded_protocol import (
    PROTOCOL_TYPE,
    Subscription,
    read_subscription,
    write_assignment,
)
from mainstem.coordinator.group.records.consumer import ClassicMemberMetadata, ClassicProtocol
from mainstem.coordinator.group.state import Client, GroupState
from mainstem.protocol.apis.k11_join_group import JoinGroupRequest, JoinGroupResponse
from mainstem.protocol.apis.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from mainstem.protocol.apis.k13_leave_group import LeaveGroupRequest, MemberIdentity, MemberResponse
from mainstem.protocol.apis.k14_sync_group import SyncGroupRequest, SyncGroupResponse
from mainstem.protocol.apis.k68_consumer_group_heartbeat import TopicPartitions
from mainstem.protocol.errors import ErrorCode, KafkaError, ProtocolError
from mainstem.protocol.uuids import uuid_to_text

# The first version whose clients can be asked to join again with the id that they are given (KIP-394).
_MEMBER_ID_REQUIRED: Final = 4


class ClassicBridge:
    """The four requests of the classic protocol, to a group that is a consumer group with members."""

    def __init__(self, state: GroupState, membership: Membership) -> None:
        self._state = state
        self._membership = membership
        self._journal = membership.journal
        self._timeouts = membership.timeouts

    def join_group(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        version: int,
        client: Client,
        token: Token,
        now_ms: int,
    ) -> None:
        try:
            response = self._join(group, request, version, client, now_ms)
        except KafkaError as error:
            response = join_error(error.code, "", version)
        self._state.effects.reply(token, response)

    def _join(
        self, group: ConsumerGroup, request: JoinGroupRequest, version: int, client: Client, now_ms: int
    ) -> JoinGroupResponse:
        is_unknown = not request.member_id
        member_id = request.member_id or uuid_to_text(UUID(self._state.new_id()).bytes)
        instance_id = request.group_instance_id
        checks.check_size(group, member_id, self._state.config.get("group.consumer.max.size"))
        _check_protocols(group, request)
        if is_unknown and instance_id is None and version >= _MEMBER_ID_REQUIRED:
            return join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id, version)
        existing = group.static_member(instance_id) if instance_id is not None else None
        replaced = None
        if instance_id is not None and not is_unknown:
            former = checks.static_member(group, instance_id, member_id)
        elif existing is not None:
            former = replace(existing, member_id=member_id, member_epoch=0, previous_member_epoch=0)
            replaced = existing
        else:
            former = group.members.get(member_id) or Member(member_id)
        subscription = _subscription(request)
        member = _updated(former, request, version, subscription, client)
        owned = self._owned(subscription)
        checks.check_state(member, owned)
        becomes_classic = existing is not None and self._membership.downgrades.is_due_without(group, existing)

        # From here on nothing is refused.
        epoch = group.epoch
        if replaced is not None:
            self._journal.replace_member(group, replaced, former)
        has_changed = self._membership.put(group, former, member, None, now_ms)
        if becomes_classic and group.assignment_epoch < group.epoch:
            reason = "the assignment is out of date since it is a classic group"
            self._membership.downgrades.run(group, [], epoch, reason, now_ms)
        else:
            member = self._membership.advance(group, member, has_changed, owned, now_ms)
            if becomes_classic:
                self._membership.downgrades.run(group, [], epoch, "", now_ms)
            else:
                self._timeouts.heard_from(group.group_id, member, now_ms)
                self._timeouts.has_joined(group.group_id, member, now_ms)
        return JoinGroupResponse(
            generation_id=member.member_epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=request.protocols[0].name,
            member_id=member_id,
        )

    def _owned(self, subscription: Subscription) -> list[TopicPartitions]:
        owned = []
        for topic in subscription.owned_partitions:
            info = self._state.topics.by_name(topic.topic)
            if info is not None:
                owned.append(TopicPartitions(info.topic_id, topic.partitions))
        return owned

    def sync_group(
        self, group: ConsumerGroup, request: SyncGroupRequest, version: int, token: Token, now_ms: int
    ) -> None:
        try:
            response = self._sync(group, request, now_ms)
        except KafkaError as error:
            response = SyncGroupResponse(error_code=error.code)
        self._state.effects.reply(token, response)

    def _sync(self, group: ConsumerGroup, request: SyncGroupRequest, now_ms: int) -> SyncGroupResponse:
        member, classic = _member(group, request.member_id, request.group_instance_id, request.generation_id)
        protocol = classic.supported_protocols[0]
        if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (
            None,
            protocol.name,
        ):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.epoch > member.member_epoch and member.state != UNREVOKED_PARTITIONS:
            self._timeouts.must_join(group.group_id, member, now_ms)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._timeouts.has_synced(group.group_id, member.member_id)
        self._timeouts.heard_from(group.group_id, member, now_ms)
        assigned = {topic_id: frozenset(epochs) for topic_id, epochs in member.assigned.items()}
        return SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(assigned, self._state.topics, protocol.metadata),
        )

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, token: Token, now_ms: int) -> None:
        try:
            error = self._heartbeat(group, request, now_ms)
        except KafkaError as refusal:
            error = refusal.code
        self._state.effects.reply(token, HeartbeatResponse(error_code=error))

    def _heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        member, _ = _member(group, request.member_id, request.group_instance_id, request.generation_id)
        self._timeouts.heard_from(group.group_id, member, now_ms)
        if (
            member.member_epoch < group.assignment_epoch
            or member.state == UNREVOKED_PARTITIONS
            or (member.state == UNRELEASED_PARTITIONS and not _waits_for_others(group, member))
        ):
            self._timeouts.must_join(group.group_id, member, now_ms)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave_group(
        self, group: ConsumerGroup, request: LeaveGroupRequest, version: int, token: Token, now_ms: int
    ) -> None:
        leaving: dict[str, Member] = {}
        answers: list[MemberResponse] = []
        for identity in leaving_members(request, version):
            answer = MemberResponse(identity.member_id, identity.group_instance_id)
            try:
                member = _leaving_member(group, identity)
                leaving[member.member_id] = member
            except KafkaError as error:
                answer.error_code = error.code
            answers.append(answer)
        if leaving:
            self._membership.remove(group, list(leaving.values()), now_ms)
        self._state.effects.reply(token, leave_response(answers, version))


def _check_protocols(group: ConsumerGroup, request: JoinGroupRequest) -> None:
    """One of those that the member offers has to be supported by all other classic members."""
    names = {protocol.name for protocol in request.protocols}
    if request.protocol_type != PROTOCOL_TYPE or not any(
        group.classic_protocols[name] == group.classic_members for name in names
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _subscription(request: JoinGroupRequest) -> Subscription:
    """The member says the same in all its protocols."""
    try:
        return read_subscription(request.protocols[0].metadata)
    except ProtocolError as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None


def _updated(
    member: Member, request: JoinGroupRequest, version: int, subscription: Subscription, client: Client
) -> Member:
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        # Version 0 has one time-out for both.
        rebalance_timeout_ms=request.rebalance_timeout_ms if version else request.session_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        client_id=client.client_id,
        client_host=client.host,
        classic=ClassicMemberMetadata(
            session_timeout_ms=request.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name, metadata) for name, metadata in protocols_of(request.protocols)
            ],
        ),
    )


def _member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[Member, ClassicMemberMetadata]:
    """The member that asks, if it is one of the classic protocol and in its generation."""
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = checks.static_member(group, instance_id, member_id)
    if member.classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if generation != member.member_epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return member, member.classic


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> Member:
    """A static member may be named by its instance id alone."""
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    known = group.static_members.get(identity.group_instance_id, "")
    return checks.static_member(group, identity.group_instance_id, identity.member_id or known)


def _waits_for_others(group: ConsumerGroup, member: Member) -> bool:
    """Whether something of its target is still with another member: joining again would bring nothing."""
    return any(
        group.is_taken_from(member.member_id, topic_id, partition)
        for topic_id, partitions in group.target_of(member.member_id).items()
        for partition in partitions
        if partition not in member.assigned.get(topic_id, {})
    )
