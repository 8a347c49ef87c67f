"""A consumer group becomes a classic one again, when its last member of the consumer protocol goes."""

from collections.abc import Collection
from functools import partial
from logging import getLogger

from mainstem.coordinator.group.classic.group import ClassicGroup
from mainstem.coordinator.group.classic.member import ClassicMember
from mainstem.coordinator.group.classic.phases import Phase
from mainstem.coordinator.group.classic.rebalance import Rebalances
from mainstem.coordinator.group.classic.record import write_group
from mainstem.coordinator.group.consumer.group import ConsumerGroup
from mainstem.coordinator.group.consumer.journal import Journal
from mainstem.coordinator.group.consumer.member import Member
from mainstem.coordinator.group.consumer.timeouts import Timeouts
from mainstem.coordinator.group.embedded_protocol import PROTOCOL_TYPE, write_assignment
from mainstem.coordinator.group.state import GroupState
from mainstem.protocol.errors import ErrorCode

logger = getLogger(__name__)


class Downgrades:
    """From consumer to classic."""

    def __init__(self, state: GroupState, journal: Journal, timeouts: Timeouts) -> None:
        self._state = state
        self._journal = journal
        self._timeouts = timeouts
        self._rebalances = Rebalances(state)

    def is_due(self, group: ConsumerGroup, leaving: Collection[Member]) -> bool:
        """Whether those who stay when these leave all speak the classic protocol."""
        staying = len(group.members) - len(leaving)
        classic = group.classic_members - sum(member.classic is not None for member in leaving)
        return 0 < staying == classic and self._is_allowed(staying)

    def is_due_without(self, group: ConsumerGroup, replaced: Member) -> bool:
        """Whether this member, whose place a classic one takes, was the only one of the consumer protocol."""
        size = len(group.members)
        return replaced.classic is None and group.classic_members == size - 1 and self._is_allowed(size)

    def run(
        self, group: ConsumerGroup, leaving: Collection[Member], generation: int, reason: str, now_ms: int
    ) -> None:
        """Go on as a classic group with those who stay. With a reason, by a rebalance."""
        left = {member.member_id for member in leaving}
        classic = self._classic_group(group, left, generation, now_ms)
        self._journal.delete_group(group)
        self._state.groups[group.group_id] = classic
        write_group(self._state, classic)
        self._state.effects.on_failure(partial(self._take_back, classic))
        for former in group.members.values():
            self._timeouts.is_gone(group.group_id, former, now_ms)
        for member in classic.members.values():
            self._rebalances.watch(classic, member)
            self._rebalances.extend_session(member, now_ms)
        logger.info("group %s is a classic group from generation %d on", group.group_id, generation)
        if reason:
            self._rebalances.prepare(classic, reason, now_ms)

    def _is_allowed(self, size: int) -> bool:
        config = self._state.config
        policy = config.get("group.consumer.migration.policy").lower()
        return policy in ("downgrade", "bidirectional") and size <= config.get("group.max.size")

    def _classic_group(
        self, group: ConsumerGroup, left: Collection[str], generation: int, now_ms: int
    ) -> ClassicGroup:
        classic = ClassicGroup(self._state, group.group_id, now_ms)
        classic.phase = Phase.STABLE
        classic.generation = generation
        classic.rebalances = group.rebalances.end(now_ms)
        for member in group.members.values():
            if member.member_id not in left:
                classic.add(_classic_member(member), PROTOCOL_TYPE)
        classic.protocol_name = classic.select_protocol()
        classic.topics = classic.compute_topics()
        for stays in classic.members.values():
            target = group.target_of(stays.member_id)
            metadata = stays.metadata(classic.protocol_name)
            stays.assignment = write_assignment(target, self._state.topics, metadata)
        return classic

    def _take_back(self, classic: ClassicGroup) -> None:
        """The change could not be written; whoever has joined the classic group since then asks again."""
        for token in self._rebalances.end(classic):
            token.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _classic_member(member: Member) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        tuple((protocol.name, bytes(protocol.metadata)) for protocol in member.classic.supported_protocols),
    )
