"""What a change of a member leads to: a new epoch of the group, a new target, a step of reconciliation.

Both protocols come here: heartbeats of consumer members, and joins of classic ones in a consumer group.
"""

from collections.abc import Collection
from functools import partial
from logging import getLogger

from mainstem.coordinator.group.consumer.downgrade import Downgrades
from mainstem.coordinator.group.consumer.group import EMPTY, STABLE_GROUP, ConsumerGroup
from mainstem.coordinator.group.consumer.journal import Journal
from mainstem.coordinator.group.consumer.member import UNREVOKED_PARTITIONS, Member
from mainstem.coordinator.group.consumer.metadata_hash import MetadataHashes
from mainstem.coordinator.group.consumer.pattern_matching import MaySee
from mainstem.coordinator.group.consumer.patterns import Change, Patterns
from mainstem.coordinator.group.consumer.reconcile import Goal, Owned, reconcile
from mainstem.coordinator.group.consumer.settings import Settings
from mainstem.coordinator.group.consumer.target import Targets
from mainstem.coordinator.group.consumer.timeouts import Timeouts
from mainstem.coordinator.group.state import GroupState

logger = getLogger(__name__)


class Membership:
    """The members of all consumer groups of one machine."""

    def __init__(self, state: GroupState) -> None:
        self.state = state
        self.journal = Journal(state)
        self.settings = Settings(state)
        self.timeouts = Timeouts(state, self.settings, self._expire)
        self.hashes = MetadataHashes(state.topics)
        self.patterns = Patterns(state, self.journal, self.hashes)
        self.targets = Targets(state, self.settings, self.journal)
        self.downgrades = Downgrades(state, self.journal, self.timeouts)

    def put(
        self, group: ConsumerGroup, former: Member, member: Member, may_see: MaySee | None, now_ms: int
    ) -> bool:
        """Take a member in, or what has changed of it; whether its subscription is another one now."""
        if member != former or member.member_id not in group.members:
            self.journal.put_member(group, member)
        change = self.patterns.update(group, former, member, may_see, now_ms)
        are_names_new = former.subscribed_topic_names != member.subscribed_topic_names
        has_subscription_changed = are_names_new or change is not Change.NONE
        if member.classic is None:
            # A pattern that is yet to be resolved brings its own epoch when it is.
            needs_epoch = are_names_new or change is Change.UPDATED_AND_RESOLVED
        else:
            needs_epoch = has_subscription_changed
        self._update_epoch(group, needs_epoch)
        return has_subscription_changed

    def advance(
        self,
        group: ConsumerGroup,
        member: Member,
        has_subscription_changed: bool,
        owned: Owned,
        now_ms: int,
    ) -> Member:
        """Assign anew where that is due, and let the member go a step towards its target."""
        former_epoch = group.assignment_epoch
        self.targets.update(group, now_ms)
        moved = self._step(group, member, has_subscription_changed, owned, now_ms)
        self._time_rebalance(group, group.assignment_epoch != former_epoch, now_ms)
        return moved

    def _step(
        self,
        group: ConsumerGroup,
        member: Member,
        has_subscription_changed: bool,
        owned: Owned,
        now_ms: int,
    ) -> Member:
        if not has_subscription_changed and member.is_reconciled_to(group.assignment_epoch):
            return member
        goal = Goal(
            group.assignment_epoch,
            group.target_of(member.member_id),
            self.targets.subscribed_topic_ids(group, member),
            partial(group.is_taken_from, member.member_id),
        )
        moved = reconcile(member, goal, has_subscription_changed, owned)
        if moved != member:
            self.journal.put_current(group, moved)
            if moved.classic is None:
                self._time_revocation(group.group_id, member, moved, now_ms)
        return moved

    def remove(self, group: ConsumerGroup, members: Collection[Member], now_ms: int) -> None:
        """These members are out; the others get what they had."""
        if self.downgrades.is_due(group, members):
            self.downgrades.run(group, members, group.epoch, "the last consumer member left", now_ms)
            return
        for member in members:
            self.journal.drop_member(group, member.member_id)
            self.timeouts.is_gone(group.group_id, member, now_ms)
        self.patterns.forget_unused(group)
        self.journal.put_epoch(group, group.epoch + 1, self.hashes.of(group.subscribed_topics()))
        self._time_rebalance(group, True, now_ms)

    def _time_rebalance(self, group: ConsumerGroup, is_disturbed: bool, now_ms: int) -> None:
        """One that is over in the same moment counts too."""
        former = group.rebalances
        is_settled = group.state_name() in (STABLE_GROUP, EMPTY)
        if is_disturbed or not is_settled:
            group.rebalances = group.rebalances.begin(now_ms)
        if is_settled:
            group.rebalances = group.rebalances.end(now_ms)
        if group.rebalances is not former:
            self.state.effects.on_failure(partial(setattr, group, "rebalances", former))

    def _update_epoch(self, group: ConsumerGroup, needs_epoch: bool) -> None:
        """A new epoch if the members ask for it, or the topics are not what they were."""
        version = self.state.topics.version
        if not needs_epoch and group.topics_version == version:
            return
        metadata_hash = self.hashes.of(group.subscribed_topics())
        if needs_epoch or metadata_hash != group.metadata_hash:
            self.journal.put_epoch(group, group.epoch + 1, metadata_hash)
        group.topics_version = version
        if group.has_partition_metadata_record:
            self.journal.drop_partition_metadata(group)

    def _time_revocation(self, group_id: str, member: Member, moved: Member, now_ms: int) -> None:
        if moved.state == UNREVOKED_PARTITIONS:
            self.timeouts.must_revoke(group_id, moved, now_ms)
        elif member.state == UNREVOKED_PARTITIONS:
            self.timeouts.has_revoked(group_id, moved.member_id)
            self.state.effects.on_failure(partial(self.timeouts.must_revoke, group_id, member, now_ms))

    def _expire(self, group_id: str, member_id: str, why: str, now_ms: int) -> None:
        group = self.state.groups.get(group_id)
        if isinstance(group, ConsumerGroup) and (member := group.members.get(member_id)) is not None:
            logger.info("group %s: member %s is removed, %s", group_id, member_id, why)
            self.remove(group, [member], now_ms)
