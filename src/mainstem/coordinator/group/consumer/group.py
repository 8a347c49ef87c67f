"""A consumer group (KIP-848) in memory: its epochs, members and targets, and what follows from them.

What follows (who owns which partition, how many are subscribed to what) is kept up to date member by member,
so that a heartbeat never looks at the whole group. The journal makes the changes, and writes them down too.
"""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from mainstem.coordinator.group.consumer.member import Member, Target
from mainstem.coordinator.group.rebalance_times import RebalanceTimes
from mainstem.coordinator.group.state import PartitionCheck
from mainstem.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from mainstem.coordinator.group.consumer.journal import Journal

EMPTY = "Empty"
STABLE_GROUP = "Stable"
_NO_TARGET: Target = {}
# From this version on, a commit can carry the epoch of a member of the consumer protocol.
_COMMIT_VERSION_MIN = 9


class Resolved(NamedTuple):
    """The topics that matched a pattern, in which version of the metadata, and when."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class ConsumerGroup:
    """One group. A new one starts at epoch 1 with an empty assignment of the same epoch, as in Kafka."""

    kind = "consumer"
    protocol_type = "consumer"

    def __init__(self, group_id: str, journal: "Journal") -> None:
        self.group_id = group_id
        self._journal = journal
        self.epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1
        self.assignment_timestamp_ms = 0
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Target] = {}
        self.resolved: dict[str, Resolved] = {}
        # Kafka before 4.1 wrote a record of another kind, which the next change of the epoch deletes.
        self.has_partition_metadata_record = False
        # Which metadata the hash was last compared with, and the patterns last matched against: a restart
        # forgets both, and looks again.
        self.topics_version = -1
        self.patterns_version = -1
        # After a failure the patterns are left alone until then.
        self.patterns_retry_ms = 0
        self.rebalances = RebalanceTimes()
        # What follows from the members.
        self.static_members: dict[str, str] = {}
        self.topic_names: Counter[str] = Counter()
        self.pattern_topics: Counter[str] = Counter()
        self.patterns: Counter[str] = Counter()
        self.server_assignors: Counter[str] = Counter()
        self.classic_protocols: Counter[str] = Counter()
        self.classic_members = 0
        self._owners: dict[bytes, dict[int, str]] = {}
        # Those who are not where the target is.
        self._unsettled: set[str] = set()

    # ---- looking

    def target_of(self, member_id: str) -> Target:
        return self.targets.get(member_id, _NO_TARGET)

    def static_member(self, instance_id: str) -> Member | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def member(self, member_id: str) -> Member:
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} is not a member of group {self.group_id}"
            )
        return member

    def is_taken_from(self, member_id: str, topic_id: bytes, partition: int) -> bool:
        """Whether somebody other than this member has the partition."""
        owner = self._owners.get(topic_id, {}).get(partition)
        return owner is not None and owner != member_id

    def subscribed_topics(self) -> Iterable[str]:
        """By name or by pattern."""
        return (
            self.topic_names.keys() | self.pattern_topics.keys() if self.pattern_topics else self.topic_names
        )

    def topics_of(self, member: Member) -> frozenset[str]:
        """What the member is subscribed to; a pattern that is not resolved yet matches nothing."""
        resolved = self.resolved.get(member.subscribed_topic_regex or "")
        if resolved is None:
            return member.subscribed_topic_names
        return member.subscribed_topic_names | resolved.topics

    def is_homogeneous(self) -> bool:
        """Whether all members are subscribed to the same topics, as far as the counts tell."""
        count = len(self.members)
        if not self.patterns:
            return all(subscribed == count for subscribed in self.topic_names.values())
        return (
            next(iter(self.patterns.values())) == count
            and not self.topic_names
            and all(matched == 1 for matched in self.pattern_topics.values())
        )

    def preferred_assignor(self) -> str | None:
        """The one that most members ask for; of two with as many members, uniform rather than range."""
        names = sorted(self.server_assignors, reverse=True)
        return max(names, key=self.server_assignors.__getitem__, default=None)

    # ---- changing: these keep the parts in step, and must not write

    def put_member(self, member: Member) -> None:
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._count(old, member)
        self._own(old, member)
        if old is not None and old.instance_id != member.instance_id:
            self._forget_instance(old)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if member.is_reconciled_to(self.assignment_epoch):
            self._unsettled.discard(member.member_id)
        else:
            self._unsettled.add(member.member_id)

    def drop_member(self, member_id: str) -> None:
        old = self.members.pop(member_id, None)
        if old is None:
            return
        self._count(old, None)
        self._own(old, None)
        self._forget_instance(old)
        self._unsettled.discard(member_id)

    def put_assignment_epoch(self, epoch: int, timestamp_ms: int) -> None:
        self.assignment_epoch, self.assignment_timestamp_ms = epoch, timestamp_ms
        self._unsettled = {
            member_id for member_id, member in self.members.items() if not member.is_reconciled_to(epoch)
        }

    def put_resolved(self, pattern: str, resolved: Resolved | None) -> None:
        old = self.resolved.pop(pattern, None)
        if old is not None:
            _subtract(self.pattern_topics, old.topics)
        if resolved is not None:
            self.resolved[pattern] = resolved
            self.pattern_topics.update(resolved.topics)

    def go_by_clock(self, now_ms: int) -> None:
        """The clock of another coordinator may have been ahead. What it did is over all the same: an interval
        that begins in the future would put off assignments and matching until then.
        """
        self.assignment_timestamp_ms = min(self.assignment_timestamp_ms, now_ms)
        self.resolved = {
            pattern: resolved._replace(timestamp_ms=min(resolved.timestamp_ms, now_ms))
            for pattern, resolved in self.resolved.items()
        }

    def _forget_instance(self, old: Member) -> None:
        """Unless another member has taken the instance id over."""
        if old.instance_id is not None and self.static_members.get(old.instance_id) == old.member_id:
            del self.static_members[old.instance_id]

    def _count(self, old: Member | None, new: Member | None) -> None:
        for attribute, counter in (
            ("subscribed_topic_regex", self.patterns),
            ("server_assignor", self.server_assignors),
        ):
            before = getattr(old, attribute, None)
            after = getattr(new, attribute, None)
            if before != after:
                _subtract(counter, [before] if before else ())
                counter.update([after] if after else ())
        names_before = old.subscribed_topic_names if old is not None else frozenset()
        names_after = new.subscribed_topic_names if new is not None else frozenset()
        if names_before != names_after:
            _subtract(self.topic_names, names_before)
            self.topic_names.update(names_after)
        classic_before = old.classic if old is not None else None
        classic_after = new.classic if new is not None else None
        if classic_before is not classic_after:
            if classic_before is not None:
                self.classic_members -= 1
                _subtract(self.classic_protocols, {p.name for p in classic_before.supported_protocols})
            if classic_after is not None:
                self.classic_members += 1
                self.classic_protocols.update({p.name for p in classic_after.supported_protocols})

    def _own(self, old: Member | None, new: Member | None) -> None:
        if old is not None:
            if (
                new is not None
                and old.assigned is new.assigned
                and old.pending_revocation is new.pending_revocation
            ):
                return
            for topic_id, partition in _partitions(old):
                owners = self._owners.get(topic_id, {})
                # A log that was compacted can name two owners in turn: the later one stays.
                if owners.get(partition) == old.member_id:
                    del owners[partition]
        if new is not None:
            for topic_id, partition in _partitions(new):
                self._owners.setdefault(topic_id, {})[partition] = new.member_id

    # ---- what offsets, listing and deletion ask of any group

    def state_name(self) -> str:
        if not self.members:
            return EMPTY
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        return "Reconciling" if self._unsettled else STABLE_GROUP

    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        version: int,
        transactional: bool,
    ) -> PartitionCheck | None:
        """KafkaError when this member may not commit. A member with an older epoch may commit what it has had
        since that epoch: then the answer is a check for each partition.
        """
        if generation < 0 and not self.members:
            return None
        if transactional and generation == -1 and not member_id and group_instance_id is None:
            return None
        member = self.member(member_id)
        if not transactional and member.classic is None and version < _COMMIT_VERSION_MIN:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "members of the consumer protocol commit with version 9 or later of OffsetCommit",
            )
        if generation == member.member_epoch:
            return None
        if generation > member.member_epoch:
            raise _wrong_epoch(
                member, f"epoch {generation} is newer than the member's, {member.member_epoch}"
            )
        return lambda topic, topic_id, partition: _check_partition(
            member, generation, topic, topic_id, partition
        )

    def offsets_committed(self, member_id: str, now_ms: int) -> None:
        """Only heartbeats count as signs of life here."""

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise _wrong_epoch(member, f"epoch {member_epoch} is not the member's, {member.member_epoch}")

    def check_offset_delete(self) -> None:
        """Always allowed; offsets of subscribed topics are refused one by one."""

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.topic_names or topic in self.pattern_topics

    def offsets_expire_after(self) -> int | None:
        return -1

    def write_tombstones(self) -> None:
        self._journal.delete_group(self)


def _partitions(member: Member) -> Iterable[tuple[bytes, int]]:
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, epochs in partitions.items():
            for partition in epochs:
                yield topic_id, partition


def _subtract(counter: Counter[str], names: Iterable[str]) -> None:
    """Count down; what nobody has any more is gone, so that the keys are what there is."""
    for name in names:
        counter[name] -= 1
        if counter[name] <= 0:
            del counter[name]


def _wrong_epoch(member: Member, message: str) -> KafkaError:
    code = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    return KafkaError(code, message)


def _check_partition(member: Member, epoch: int, topic: str, topic_id: bytes, partition: int) -> None:
    given = member.assignment_epoch(topic_id, partition)
    if given is None:
        raise _wrong_epoch(member, f"{topic}-{partition} is not assigned to the member")
    if epoch < given:
        raise _wrong_epoch(
            member, f"epoch {epoch} is older than the one that gave {topic}-{partition}, {given}"
        )
