"""A classic group: its members and its state, and the questions that others ask about it.

It knows no time-outs and sends nothing; how it moves from state to state is in `rebalance.py`.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import ClassVar

from mainstem.coordinator.group.classic.member import ClassicMember, PendingMember, Protocols
from mainstem.coordinator.group.classic.phases import PREVIOUS, Phase
from mainstem.coordinator.group.embedded_protocol import PROTOCOL_TYPE, subscribed_topics
from mainstem.coordinator.group.rebalance_times import RebalanceTimes
from mainstem.coordinator.group.records import encode_key
from mainstem.coordinator.group.records.classic import GroupMetadataKey
from mainstem.coordinator.group.state import GroupState, PartitionCheck
from mainstem.protocol.errors import ErrorCode, KafkaError, ProtocolError

_REBALANCING_OR_STABLE = (Phase.PREPARING_REBALANCE, Phase.COMPLETING_REBALANCE, Phase.STABLE)


@dataclass(eq=False, slots=True)
class ClassicGroup:
    """Members wait in it with their requests; `awaiting_join` counts those whose join is not answered."""

    kind: ClassVar[str] = "classic"

    _state: GroupState
    group_id: str
    # -1: not known, which old records do not say.
    phase_since_ms: int = -1
    phase: Phase = Phase.EMPTY
    previous_phase: Phase = Phase.DEAD
    generation: int = 0
    # "" until the first member says it: a group that only holds offsets has none.
    protocol_type: str = ""
    protocol_name: str | None = None
    leader_id: str | None = None
    members: dict[str, ClassicMember] = field(default_factory=dict)
    # The member ids by group.instance.id.
    static_members: dict[str, str] = field(default_factory=dict)
    pending_joins: dict[str, PendingMember] = field(default_factory=dict)
    pending_syncs: set[str] = field(default_factory=set)
    awaiting_join: int = 0
    has_new_members: bool = False
    # The topics of all members, as far as they can be read.
    topics: frozenset[str] | None = None
    # How many members offer each protocol; none that nobody offers.
    _support: Counter[str] = field(default_factory=Counter)
    join_timer: object = field(default_factory=object)
    sync_timer: object = field(default_factory=object)
    rebalances: RebalanceTimes = field(default_factory=RebalanceTimes)

    # ---- state

    def move_to(self, phase: Phase, now_ms: int) -> None:
        assert self.phase in PREVIOUS[phase], f"{self.group_id}: from {self.phase.value} to {phase.value}"
        self.previous_phase = self.phase
        self.phase = phase
        self.phase_since_ms = now_ms
        if phase is Phase.PREPARING_REBALANCE:
            self.rebalances = self.rebalances.begin(now_ms)
        elif phase in (Phase.STABLE, Phase.EMPTY):
            self.rebalances = self.rebalances.end(now_ms)

    def next_generation(self, now_ms: int) -> None:
        """All have joined: those who are there make up the next generation."""
        self.generation += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.topics = self.compute_topics()
        self.move_to(Phase.COMPLETING_REBALANCE if self.members else Phase.EMPTY, now_ms)
        self.pending_syncs.clear()

    def has_all_joined(self) -> bool:
        return len(self.members) == self.awaiting_join and not self.pending_joins

    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # ---- members

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self.members[member.member_id] = member
        self._count_support(member.protocols, 1)
        if member.join_token is not None:
            self.awaiting_join += 1
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> ClassicMember | None:
        """Take out a member or a pending one; the caller answers the requests with which it waits."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_support(member.protocols, -1)
            if member.join_token is not None:
                self.awaiting_join -= 1
            if member.group_instance_id is not None:
                del self.static_members[member.group_instance_id]
        if member_id == self.leader_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.discard(member_id)
        return member

    def set_protocols(self, member: ClassicMember, protocols: Protocols) -> None:
        self._count_support(member.protocols, -1)
        member.protocols = protocols
        self._count_support(protocols, 1)

    def _count_support(self, protocols: Protocols, members: int) -> None:
        for name, _ in protocols:
            self._support[name] += members
            if not self._support[name]:
                del self._support[name]

    def rename(self, member: ClassicMember, new: ClassicMember) -> None:
        """A static member goes on under a new id; `new` has everything but the protocols' votes."""
        assert member.group_instance_id is not None
        del self.members[member.member_id]
        if member.join_token is not None:
            self.awaiting_join -= 1
        self.members[new.member_id] = new
        if new.join_token is not None:
            self.awaiting_join += 1
        self.static_members[member.group_instance_id] = new.member_id
        if self.leader_id == member.member_id:
            self.leader_id = new.member_id
        if member.member_id in self.pending_syncs:
            self.pending_syncs.remove(member.member_id)
            self.pending_syncs.add(new.member_id)

    def elect_joined_leader(self) -> bool:
        """Whether a member that has joined is the leader now; one that has not joined is replaced."""
        leader = None if self.leader_id is None else self.members.get(self.leader_id)
        if leader is None or leader.join_token is None:
            joined = (member for member in self.members.values() if member.join_token is not None)
            leader = next(joined, None)
            if leader is None:
                return False
            self.leader_id = leader.member_id
        return True

    def check_member(self, member_id: str, group_instance_id: str | None) -> None:
        """KafkaError when there is no such member, or when it was replaced by another of its instance id."""
        if group_instance_id is not None:
            known = self.static_members.get(group_instance_id)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    # ---- protocols

    def supports(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether somebody with these protocols could take part: one of them is supported by all members."""
        if self.phase is Phase.EMPTY:
            return bool(protocol_type and names)
        size = len(self.members)
        return protocol_type == self.protocol_type and any(self._support[name] == size for name in names)

    def select_protocol(self) -> str:
        """Each member votes for the one that it prefers of those that all support; of two with as many votes
        it is the one that the older member wants (Kafka leaves this to the order of a hash table).
        """
        size = len(self.members)
        candidates = {name for name, count in self._support.items() if count == size}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes, key=votes.__getitem__)

    def compute_topics(self) -> frozenset[str] | None:
        """The topics that consumers subscribe to; None when its members cannot be read."""
        if self.protocol_type != PROTOCOL_TYPE:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        try:
            return frozenset(
                topic
                for member in self.members.values()
                for topic in subscribed_topics(member.metadata(self.protocol_name))
            )
        except ProtocolError:
            return None

    # ---- as a group of any kind

    def state_name(self) -> str:
        return self.phase.value

    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        version: int,
        transactional: bool,
    ) -> PartitionCheck | None:
        if self.phase is Phase.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation < 0 and self.phase is Phase.EMPTY:
            return None  # an administrator, or a consumer that manages its partitions itself
        if generation >= 0 or member_id or group_instance_id is not None:
            self.check_member(member_id, group_instance_id)
            if generation != self.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not transactional and self.phase is not Phase.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not transactional and self.phase is Phase.COMPLETING_REBALANCE:
            # The member knows the new generation but not yet what it owns in it.
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        return None

    def offsets_committed(self, member_id: str, now_ms: int) -> None:
        member = self.members.get(member_id)
        if member is not None and self.phase in (Phase.STABLE, Phase.PREPARING_REBALANCE):
            self._state.timers.schedule(member, now_ms + member.session_timeout_ms, member.on_session_end)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        self._check_not_dead()

    def check_offset_delete(self) -> None:
        self._check_not_dead()
        if self.phase in _REBALANCING_OR_STABLE and self.protocol_type != PROTOCOL_TYPE:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        self._check_not_dead()
        if self.phase in _REBALANCING_OR_STABLE:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def _check_not_dead(self) -> None:
        if self.phase is Phase.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is in dead state.")

    def is_subscribed_to(self, topic: str) -> bool:
        """Consumers whose subscriptions are not known count as subscribed to everything."""
        return self.protocol_type == PROTOCOL_TYPE if self.topics is None else topic in self.topics

    def offsets_expire_after(self) -> int | None:
        if self.pending_joins:
            return None  # whoever was just given an id must find the group
        if not self.protocol_type:
            return -1
        if self.phase is Phase.EMPTY:
            return self.phase_since_ms
        if self.topics is not None and self.phase is Phase.STABLE:
            return -1  # where it is not subscribed
        return None

    def write_tombstones(self) -> None:
        groups, effects = self._state.groups, self._state.effects
        effects.write(encode_key(GroupMetadataKey(self.group_id)), None)
        if groups.get(self.group_id) is self:
            del groups[self.group_id]
            effects.on_failure(lambda: groups.setdefault(self.group_id, self))
