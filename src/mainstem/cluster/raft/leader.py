"""Leader: knows how far every replica has come, and so what is committed.

It counts itself by what is durable here, the others by what their fetches say is durable there. What it
cannot get a majority to fetch it does not lead any more.
"""

from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from mainstem.cluster.raft.control_records import ControlRecord, KRaftVersionRecord, LeaderChangeMessage
from mainstem.cluster.raft.effects import BecameActive, Resigned
from mainstem.cluster.raft.election import Election
from mainstem.cluster.raft.framing import begin_quorum_epoch_request
from mainstem.cluster.raft.history import BEFORE_ALL
from mainstem.cluster.raft.voter_changes import VoterChanges
from mainstem.cluster.raft.voters import ReplicaKey
from mainstem.cluster.raft.waiting import WaitingFetches
from mainstem.protocol.uuids import uuid_to_text

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica

# An observer that has not fetched for so long is forgotten.
_OBSERVER_SESSION_MS = 300_000
# Nobody becomes a voter who was not caught up with the log within this time.
_CAUGHT_UP_WITHIN_MS = 3_600_000


class Progress(Struct, gc=False):
    """How far a replica has come, by its own word."""

    key: ReplicaKey
    end_offset: int | None = None
    fetched_ms: int = -1
    caught_up_ms: int = -1
    # Where the leader's log ended at that fetch: who comes to fetch that had caught up then.
    leader_end_offset: int = -1

    def fetched(self, key: ReplicaKey, end_offset: int, leader_end_offset: int, now_ms: int) -> None:
        if end_offset >= leader_end_offset:
            self.caught_up_ms = now_ms
        elif 0 <= self.leader_end_offset <= end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.key, self.end_offset = key, end_offset
        self.fetched_ms, self.leader_end_offset = now_ms, leader_end_offset


class Leader:
    NAME = "leader"

    def __init__(self, replica: "Replica") -> None:
        self.epoch = replica.epoch
        self.start_offset = replica.end_offset
        self.is_active = False
        self.changes = VoterChanges(self, replica)
        self.waiting = WaitingFetches()
        self.voters: dict[int, Progress] = {}
        self.observers: dict[ReplicaKey, Progress] = {}
        # Voters that have fetched since the last time that a majority had.
        self._heard: set[int] = set()
        self._check_quorum_ms = replica.now_ms + replica.settings.check_quorum_timeout_ms
        self._begin_ms = replica.now_ms
        self._resigns = False

    def begin(self, replica: "Replica", election: Election) -> None:
        """Begin the epoch in the log. What only the first snapshot says about the voters is said again, so
        that it reaches those that never read it; and a new address of this voter is made known.
        """
        history = replica.history
        records: list[ControlRecord] = [
            LeaderChangeMessage(
                leader_id=replica.key.node_id,
                voters=history.voters.leader_voters(),
                granting_voters=election.granting.leader_voters(),
            )
        ]
        if history.kraft_version > 0:
            if history.voters_offset == BEFORE_ALL:
                records.append(KRaftVersionRecord(k_raft_version=history.kraft_version))
            voters = history.voters
            if (mine := voters.find(replica.key)) is not None and mine != replica.identity.as_voter:
                voters = voters.with_voter(replica.identity.as_voter)
            if history.voters_offset == BEFORE_ALL or voters != history.voters:
                records.append(voters.to_record())
        self.know_voters(replica)
        replica.append_control(records)

    def end(self, replica: "Replica") -> None:
        """Somebody else decides from here on."""
        replica.effects.append(Resigned(self.epoch))
        self.waiting.give_up(replica)
        self.changes.give_up(replica)

    def grants(self, replica: "Replica", candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return False

    # ---- who has what

    def know_voters(self, replica: "Replica") -> None:
        """The voters are others now: what is known of each replica is kept."""
        known = [*self.voters.values(), *self.observers.values()]
        self.voters = {voter.key.node_id: Progress(voter.key) for voter in replica.history.voters}
        self.observers = {}
        for progress in known:
            if replica.history.voters.find(progress.key) is not None:
                self.voters[progress.key.node_id] = progress
            elif progress.key.node_id != replica.key.node_id:
                self.observers[progress.key] = progress
        # The majority is another one now, and has not been asked for yet.
        self._heard.clear()
        self._check_quorum_ms = replica.now_ms + replica.settings.check_quorum_timeout_ms

    def followed(self, replica: "Replica", key: ReplicaKey, end_offset: int) -> None:
        """A replica asks for `end_offset`: everything before it is durable there."""
        assert end_offset <= replica.end_offset
        self.heard(replica, key)
        if key.node_id < 0 or (key.node_id == replica.key.node_id and key.matches(replica.key)):
            return
        if replica.history.voters.find(key) is not None:
            progress = self.voters[key.node_id]
            self._look_whether_it_is_the_same(replica, progress.key, key)
        else:
            if key not in self.observers:
                self.forget_observers(replica.now_ms)
            progress = self.observers.setdefault(key, Progress(key))
        progress.fetched(key, end_offset, replica.end_offset, replica.now_ms)
        self.commit(replica)

    def _look_whether_it_is_the_same(self, replica: "Replica", known: ReplicaKey, key: ReplicaKey) -> None:
        """Without directory ids among the voters, nothing else tells two nodes with one id apart."""
        if not known.matches(key):
            replica.complain(
                f"node {key.node_id} fetches with the directory id {uuid_to_text(key.directory_id)}, and did "
                f"with {uuid_to_text(known.directory_id)} before: it has lost its directory, or two nodes "
                "have this node.id"
            )

    def heard(self, replica: "Replica", key: ReplicaKey) -> None:
        """A voter fetches from this leader; once a majority has, they all have their time again."""
        voters = replica.history.voters
        if voters.find(key) is None or key.node_id == replica.key.node_id:
            return
        self._heard.add(key.node_id)
        if len(self._heard) + replica.is_voter >= voters.majority:
            self._heard.clear()
            self._check_quorum_ms = replica.now_ms + replica.settings.check_quorum_timeout_ms

    def commit(self, replica: "Replica") -> None:
        """Raise the high watermark to what a majority has, once that is beyond the start of this epoch:
        records of earlier epochs are committed only together with one of this.
        """
        ends = sorted(self._ends(replica), reverse=True)
        if not ends:
            return
        agreed = ends[len(ends) // 2]
        if agreed > self.start_offset and replica.raise_high_watermark(agreed):
            self.changes.committed(replica, agreed)
            if not self.is_active:
                self.is_active = True
                replica.effects.append(BecameActive(self.epoch))
        self.waiting.answer(replica)

    def _ends(self, replica: "Replica") -> list[int]:
        return [
            replica.durable_offset
            if replica.key.matches(voter.key)
            else -1
            if (end_offset := self.voters[voter.key.node_id].end_offset) is None
            else end_offset
            for voter in replica.history.voters
        ]

    def is_caught_up(self, replica: "Replica", key: ReplicaKey) -> bool:
        """Whether an observer could vote at once without holding up the others."""
        progress = self.observers.get(key)
        return (
            progress is not None
            and progress.caught_up_ms >= 0
            and progress.fetched_ms > replica.now_ms - _CAUGHT_UP_WITHIN_MS
        )

    def successors(self, replica: "Replica") -> list[ReplicaKey]:
        """The other voters, whoever has most first."""

        def order(key: ReplicaKey) -> tuple[int, int]:
            end_offset = self.voters[key.node_id].end_offset
            return (1 if end_offset is None else -end_offset, key.node_id)

        return sorted((voter.key for voter in replica.others), key=order)

    def forget_observers(self, now_ms: int) -> None:
        """Those that have not fetched for long are gone."""
        self.observers = {
            key: progress
            for key, progress in self.observers.items()
            if progress.fetched_ms > now_ms - _OBSERVER_SESSION_MS
        }

    # ---- as time passes

    def resign(self) -> None:
        """Lead no more, from the next poll on."""
        self._resigns = True

    def poll(self, replica: "Replica") -> int | None:
        has_peers = len(replica.history.voters) > 1 or not replica.is_voter
        if self._resigns or replica.stopping or (has_peers and replica.now_ms >= self._check_quorum_ms):
            replica.become_resigned()
            return None
        deadlines = [self._check_quorum_ms] if has_peers else []
        deadlines += [at for at in (self.waiting.poll(replica), self.changes.poll(replica)) if at is not None]
        if replica.others:
            deadlines.append(self._tell_voters(replica))
        return min(deadlines, default=None)

    def _tell_voters(self, replica: "Replica") -> int:
        """Tell voters that do not fetch who leads: at once in the beginning, then again and again."""
        interval_ms = replica.settings.begin_quorum_epoch_interval_ms
        if replica.now_ms < self._begin_ms:
            return self._begin_ms
        self._begin_ms = replica.now_ms + interval_ms
        for voter in replica.others:
            fetched_ms = self.voters[voter.key.node_id].fetched_ms
            destination = replica.destination(voter)
            if destination is not None and (fetched_ms < 0 or replica.now_ms - fetched_ms >= interval_ms):
                replica.ask(destination, partial(begin_quorum_epoch_request, replica, voter))
        return self._begin_ms
