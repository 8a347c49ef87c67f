"""The target assignment of a group: computed once for each group epoch, and not more often than the group's
interval allows, by the assignor that most members ask for.
"""

from mainstem.coordinator.group.assignors import GroupSpec, MemberSpec, assign
from mainstem.coordinator.group.consumer.group import ConsumerGroup
from mainstem.coordinator.group.consumer.journal import Journal
from mainstem.coordinator.group.consumer.member import UNRELEASED_PARTITIONS, Member
from mainstem.coordinator.group.consumer.settings import Settings
from mainstem.coordinator.group.state import GroupState
from mainstem.coordinator.topics import TopicInfo

# The shortest time after which a member that waits is asked to come again.
_SOON_MS = 50


class Targets:
    """Brings targets up to their group's epoch."""

    def __init__(self, state: GroupState, settings: Settings, journal: Journal) -> None:
        self._state = state
        self._settings = settings
        self._journal = journal

    def next_heartbeat_ms(self, group: ConsumerGroup, member: Member, now_ms: int) -> int:
        """In what time the member shall be heard of again: as often as the group's setting says, but sooner
        while it waits, for a new target or for what others have yet to release.
        """
        interval_ms = self._settings.of(group.group_id).heartbeat_interval_ms
        if group.assignment_epoch < group.epoch:
            return min(interval_ms, max(_SOON_MS, self._next_ms(group) - now_ms))
        if member.state == UNRELEASED_PARTITIONS:
            # The longer it takes, the more rarely: a member that does not let go must not make the others
            # ask all the time.
            waited_ms = now_ms - group.assignment_timestamp_ms
            return min(interval_ms, max(_SOON_MS, waited_ms // 4))
        return interval_ms

    def _next_ms(self, group: ConsumerGroup) -> int:
        """When the group may be assigned anew."""
        last_ms = group.assignment_timestamp_ms
        return last_ms + self._settings.of(group.group_id).assignment_interval_ms if last_ms else 0

    def update(self, group: ConsumerGroup, now_ms: int) -> None:
        """Assign anew if the group has changed since it was last assigned, and the time for it has come."""
        if group.assignment_epoch >= group.epoch or now_ms < self._next_ms(group):
            return
        name = group.preferred_assignor() or self._settings.default_assignor()
        assignment = assign(name, self._spec(group))
        for member_id in group.members:
            topics = assignment.get(member_id, {})
            if topics != group.targets.get(member_id):
                target = {topic_id: frozenset(parts) for topic_id, parts in topics.items()}
                self._journal.put_target(group, member_id, target)
        self._journal.put_assignment_epoch(group, group.epoch, now_ms)

    def subscribed_topic_ids(self, group: ConsumerGroup, member: Member) -> frozenset[bytes]:
        """The topics that the member is subscribed to and that exist."""
        infos = map(self._state.topics.by_name, group.topics_of(member))
        return frozenset(info.topic_id for info in infos if info is not None)

    def _spec(self, group: ConsumerGroup) -> GroupSpec:
        topics: dict[str, TopicInfo] = {}
        for name in group.subscribed_topics():
            info = self._state.topics.by_name(name)
            if info is not None:
                topics[name] = info
        # Most members have the same subscription: each is looked up once.
        known: dict[tuple[frozenset[str], str | None], frozenset[bytes]] = {}
        members: dict[str, MemberSpec] = {}
        for member_id, member in group.members.items():
            subscription = member.subscribed_topic_names, member.subscribed_topic_regex
            topic_ids = known.get(subscription)
            if topic_ids is None:
                names = group.topics_of(member)
                topic_ids = known[subscription] = frozenset(
                    topics[name].topic_id for name in names if name in topics
                )
            members[member_id] = MemberSpec(member.instance_id, topic_ids, group.target_of(member_id))
        partition_counts = {info.topic_id: info.partition_count for info in topics.values()}
        return GroupSpec(members, partition_counts, group.is_homogeneous())
