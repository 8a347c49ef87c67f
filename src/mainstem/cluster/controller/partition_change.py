"""One change of a partition: the only place where PartitionChangeRecords are made.

Whoever wants a change says what the in-sync replicas, the replicas or the directories should be; here it is
decided what follows from that: whether a reassignment is complete, who is still eligible to lead (KIP-966),
who leads, and whether a new leader epoch begins. What is not different is not in the record, and where
nothing is there is no record.

Without eligible leader replicas the last in-sync replica stays in the set when its broker is gone, for nobody
else has all the data; with them the set may become empty.
"""

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct

from mainstem.cluster.directories import UNKNOWN_DIRECTORY, default_directory, is_online
from mainstem.cluster.image import NO_LEADER, BrokerImage, PartitionImage
from mainstem.cluster.records import PartitionChangeRecord
from mainstem.cluster.topics_delta import LEADER_UNCHANGED, RECOVERY_STATE_UNCHANGED

RECOVERED = 0
RECOVERING = 1


class Election(Enum):
    """Who may become the leader."""

    CLEAN = "a replica that has everything"
    PREFERRED = "the first replica, if it has everything"
    UNCLEAN = "any replica that is there, if none has everything"


class PartitionRules(Struct, frozen=True):
    """What the cluster's level and a topic's settings say about its partitions."""

    min_isr: int
    keeps_elr: bool
    knows_directories: bool
    shrinking_begins_epoch: bool


class PartitionChange:
    """Says what is wanted by its attributes; `record()` is what comes of it, once."""

    def __init__(
        self,
        topic_id: bytes,
        partition: PartitionImage,
        rules: PartitionRules,
        brokers: Mapping[int, BrokerImage],
    ) -> None:
        self._topic_id = topic_id
        self._old = partition
        self._rules = rules
        self._brokers = brokers
        self.isr = list(partition.isr)
        self.replicas = list(partition.replicas)
        self.removing = list(partition.removing_replicas)
        self.adding = list(partition.adding_replicas)
        self.recovery = partition.leader_recovery_state
        # Where replicas are, as far as it is to be something else.
        self.directories: dict[int, bytes] = {}
        # Replicas that may have lost something: they are not even eligible.
        self.damaged: frozenset[int] = frozenset()
        self.election = Election.CLEAN
        # Whether even a leader that stays begins a new epoch.
        self.begins_epoch = False
        self._elr = list(partition.eligible_leader_replicas)

    def record(self) -> PartitionChangeRecord | None:
        """The record that makes the change, or None when there is nothing to change."""
        self._complete_reassignment()
        self._update_elr()
        leader, unclean = self._elect()
        if unclean:
            self.isr, self._elr, self.recovery = [leader], [], RECOVERING
        elif leader in self._elr:
            self.isr = [leader]
            self._elr.remove(leader)
        elif not self.isr and not self._rules.keeps_elr:
            staying = [replica for replica in self._old.isr if replica in self.replicas]
            self.isr = staying or self.replicas[:1]
        record = PartitionChangeRecord(self._old.partition, self._topic_id)
        if leader != self._old.leader or unclean or self._needs_epoch():
            record.leader = leader
        self._put_sets(record, leader)
        self._put_assignment(record)
        if self.recovery != self._old.leader_recovery_state:
            record.leader_recovery_state = self.recovery
        return None if _changes_nothing(record) else record

    # ---- what follows

    def _complete_reassignment(self) -> None:
        """It is done as soon as all replicas that are to stay are in sync."""
        if not self.removing and not self.adding:
            return
        isr = [replica for replica in self.isr if replica not in self.removing]
        replicas = [replica for replica in self.replicas if replica not in self.removing]
        if isr and replicas and set(isr) >= set(replicas):
            self.isr, self.replicas, self.removing, self.adding = isr, replicas, [], []

    def _update_elr(self) -> None:
        """Whoever leaves the in-sync replicas while they are too few to accept more stays eligible: nothing
        is committed that it does not have.
        """
        if not self._rules.keeps_elr or len(self.isr) >= self._rules.min_isr:
            self._elr = []
            return
        known = {*self._elr, *self._old.isr} - {*self.isr, *self.damaged}
        self._elr = [replica for replica in self.replicas if replica in known]

    def _elect(self) -> tuple[int, bool]:
        """The leader, and whether it may lack something."""
        preferred = self.election is Election.PREFERRED
        order = [self.replicas[0], self._old.leader] if preferred else [self._old.leader]
        for replica in (*order, *self.replicas):
            if self._is_eligible(replica):
                return replica, False
        last_known = self._last_known_leader()
        if last_known is not None:
            return last_known, True
        if self.election is Election.UNCLEAN:
            for replica in self.replicas:
                if self._is_available(replica):
                    return replica, True
        return NO_LEADER, False

    def _is_eligible(self, replica: int) -> bool:
        has_everything = replica in self.isr if self.isr else replica in self._elr
        return has_everything and self._is_available(replica)

    def _last_known_leader(self) -> int | None:
        """Where nobody is left who surely has everything, the leader that was the last is the best one."""
        if not self._rules.keeps_elr or self.isr or self._elr or len(self._old.last_known_elr) != 1:
            return None
        (leader,) = self._old.last_known_elr
        return leader if leader in self.replicas and self._is_available(leader) else None

    def _is_available(self, replica: int) -> bool:
        broker = self._brokers.get(replica)
        if broker is None or not broker.active:
            return False
        return is_online(broker, self._directory_of(replica))

    def _needs_epoch(self) -> bool:
        """Whether the leader that stays begins a new epoch, so that nobody goes on with what was."""
        return (
            self.begins_epoch
            or not set(self.replicas) >= set(self._old.replicas)
            or (self._rules.shrinking_begins_epoch and not set(self.isr) >= set(self._old.isr))
        )

    # ---- into the record

    def _put_sets(self, record: PartitionChangeRecord, leader: int) -> None:
        old = self._old
        if self.isr != list(old.isr):
            record.isr = self.isr
        if self._elr != list(old.eligible_leader_replicas):
            record.eligible_leader_replicas = self._elr
        last_known = self._next_last_known(leader)
        if last_known != list(old.last_known_elr):
            record.last_known_elr = last_known

    def _next_last_known(self, leader: int) -> list[int]:
        """The last leader is kept in mind from when the set becomes empty until there is a leader again."""
        old = self._old
        if leader != NO_LEADER:
            return []
        if self._rules.keeps_elr and old.isr and not self.isr:
            if old.leader != NO_LEADER:
                return [old.leader]
            if len(old.isr) == 1:
                return list(old.isr)
        return list(old.last_known_elr)

    def _put_assignment(self, record: PartitionChangeRecord) -> None:
        old = self._old
        stay = not self.directories and self.replicas == list(old.replicas)
        if self._rules.knows_directories and not stay:
            directories = [self._directory_of(replica) for replica in self.replicas]
            if directories != list(old.directories):
                record.directories = directories
        if self.replicas != list(old.replicas):
            record.replicas = self.replicas
        if self.removing != list(old.removing_replicas):
            record.removing_replicas = self.removing
        if self.adding != list(old.adding_replicas):
            record.adding_replicas = self.adding

    def _directory_of(self, replica: int) -> bytes:
        if replica in self.directories:
            return self.directories[replica]
        if replica in self._old.replicas:
            index = self._old.replicas.index(replica)
            return self._old.directories[index] if index < len(self._old.directories) else UNKNOWN_DIRECTORY
        return default_directory(self._brokers.get(replica))


def _changes_nothing(record: PartitionChangeRecord) -> bool:
    return (
        record.leader == LEADER_UNCHANGED
        and record.leader_recovery_state == RECOVERY_STATE_UNCHANGED
        and record.isr is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
        and record.replicas is None
        and record.removing_replicas is None
        and record.adding_replicas is None
        and record.directories is None
    )
