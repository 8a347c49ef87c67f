"""A live classic group becomes a consumer group, when the first member of the consumer protocol joins it.

Its members stay, and go on in the classic protocol; what they own and the generation carry over.
"""

from functools import partial
from logging import getLogger

from mainstem.coordinator.group.classic.group import ClassicGroup
from mainstem.coordinator.group.classic.member import ClassicMember
from mainstem.coordinator.group.classic.phases import Phase
from mainstem.coordinator.group.classic.rebalance import Rebalances
from mainstem.coordinator.group.classic.responses import join_error
from mainstem.coordinator.group.consumer.group import ConsumerGroup
from mainstem.coordinator.group.consumer.journal import Journal
from mainstem.coordinator.group.consumer.member import Member, Target
from mainstem.coordinator.group.consumer.metadata_hash import MetadataHashes
from mainstem.coordinator.group.consumer.timeouts import Timeouts
from mainstem.coordinator.group.embedded_protocol import (
    PROTOCOL_TYPE,
    read_assignment,
    read_subscription,
)
from mainstem.coordinator.group.records.consumer import ClassicMemberMetadata, ClassicProtocol
from mainstem.coordinator.group.state import GroupState
from mainstem.protocol.errors import ErrorCode, KafkaError, ProtocolError

logger = getLogger(__name__)


class Upgrades:
    """From classic to consumer."""

    def __init__(
        self, state: GroupState, journal: Journal, hashes: MetadataHashes, timeouts: Timeouts
    ) -> None:
        self._state = state
        self._journal = journal
        self._hashes = hashes
        self._timeouts = timeouts
        self._rebalances = Rebalances(state)

    def consumer_group(self, classic: ClassicGroup) -> ConsumerGroup:
        """What the group would be, and KafkaError (GROUP_ID_NOT_FOUND) when it cannot. Changes nothing."""
        config = self._state.config
        if config.get("group.consumer.migration.policy").lower() not in ("upgrade", "bidirectional"):
            raise _cannot(classic, "online upgrade is disabled")
        if classic.protocol_type != PROTOCOL_TYPE:
            raise _cannot(classic, "its members are no consumers")
        if len(classic.members) > config.get("group.consumer.max.size"):
            raise _cannot(classic, "it has more members than a consumer group may have")
        group = self._journal.new_group(classic.group_id)
        # A group in its first rebalance has no generation yet, and epoch 0 means joining.
        epoch = max(classic.generation, 1)
        group.epoch = group.assignment_epoch = epoch
        group.rebalances = classic.rebalances
        try:
            for member in classic.members.values():
                target = self._target(classic, member)
                group.targets[member.member_id] = target
                group.put_member(_member(classic, member, target, epoch))
        except ProtocolError:
            raise _cannot(classic, "a member describes itself in a way that cannot be read") from None
        if classic.phase is Phase.STABLE:
            group.metadata_hash = self._hashes.of(group.subscribed_topics())
        # Otherwise its rebalance is not over: without a hash the first heartbeat brings a new epoch for sure.
        return group

    def run(self, classic: ClassicGroup, group: ConsumerGroup, now_ms: int) -> None:
        """Put the one in place of the other. Those who wait in the classic group have to join again."""
        former_phase = classic.phase
        self._send_away(classic)
        self._rebalances.end(classic)
        self._state.effects.on_failure(partial(self._resume, classic, former_phase, now_ms))
        classic.write_tombstones()
        self._journal.write_group(group)
        for member in group.members.values():
            self._timeouts.heard_from(group.group_id, member, now_ms)
            self._state.effects.on_failure(partial(self._timeouts.forget, group.group_id, member.member_id))
        logger.info("group %s is a consumer group from epoch %d on", group.group_id, group.epoch)

    def _send_away(self, classic: ClassicGroup) -> None:
        again = ErrorCode.REBALANCE_IN_PROGRESS
        for member in classic.members.values():
            answer = join_error(again, member.member_id, member.join_version)
            self._rebalances.answer_join(classic, member, answer)
            self._rebalances.refuse_sync(member, again)

    def _target(self, classic: ClassicGroup, member: ClassicMember) -> Target:
        if not member.assignment:
            return {}
        assignment = read_assignment(member.assignment)
        if assignment.user_data:
            raise _cannot(classic, "its assignor is a custom one, which keeps data of its own")
        target: Target = {}
        for topic in assignment.assigned_partitions:
            info = self._state.topics.by_name(topic.topic)
            if info is not None:
                target[info.topic_id] = frozenset(topic.partitions)
        return target

    def _resume(self, classic: ClassicGroup, phase: Phase, now_ms: int) -> None:
        """The change could not be written: the classic group goes on, its rebalance begins anew."""
        classic.phase = Phase.STABLE
        classic.pending_joins.clear()
        for member in classic.members.values():
            self._rebalances.extend_session(member, now_ms)
        if phase is not Phase.STABLE:
            self._rebalances.prepare(classic, "it could not become a consumer group", now_ms)


def _member(classic: ClassicGroup, member: ClassicMember, target: Target, epoch: int) -> Member:
    # A group that has not finished its first rebalance has not chosen a protocol.
    metadata = member.metadata(classic.protocol_name) if classic.protocol_name else member.protocols[0][1]
    subscription = read_subscription(metadata)
    return Member(
        member_id=member.member_id,
        member_epoch=epoch,
        previous_member_epoch=epoch,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        assigned={
            topic_id: dict.fromkeys(sorted(partitions), epoch) for topic_id, partitions in target.items()
        },
        classic=ClassicMemberMetadata(
            session_timeout_ms=member.session_timeout_ms,
            supported_protocols=[ClassicProtocol(name, metadata) for name, metadata in member.protocols],
        ),
    )


def _cannot(classic: ClassicGroup, why: str) -> KafkaError:
    message = f"Cannot upgrade classic group {classic.group_id} to a consumer group: {why}."
    logger.info(message)
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)
