"""Follower: fetches from the leader. What it fetches is on disk before it asks for more, because its next
fetch says so. A voter stands when the leader is silent for controller.quorum.fetch.timeout.ms; an observer
asks around instead.
"""

from typing import TYPE_CHECKING

from msgspec import Struct

from mainstem.cluster.raft.fetching import fetch_from_anybody, fetch_from_leader
from mainstem.cluster.raft.joining import next_voter_request
from mainstem.cluster.raft.settings import RaftSettings
from mainstem.cluster.raft.voters import ReplicaKey
from mainstem.cluster.snapshot import SnapshotId

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica

# How far voters stand apart that all see the leader's machine refuse them in the same moment.
_STAGGER_MS = 50


class FetchingSnapshot(Struct, gc=False):
    """A snapshot that the leader sends in pieces."""

    snapshot_id: SnapshotId
    position: int = 0


class Follower:
    NAME = "follower"

    def __init__(self, now_ms: int, settings: RaftSettings, *, is_patient: bool = False) -> None:
        self._fetch_timeout_ms = settings.fetch_timeout_ms
        self._update_voter_interval_ms = settings.update_voter_interval_ms
        self.deadline_ms = now_ms + settings.fetch_timeout_ms
        self.update_voter_ms = now_ms + settings.update_voter_interval_ms
        # Whether the leader knows this voter right, told in this epoch (kraft.version 0).
        self.updated_voter = False
        self.fetching_snapshot: FetchingSnapshot | None = None
        # From the first good fetch on the leader is known to be alive, until it says goodbye or is refused.
        self._leader_lives = False
        # Whether a refused connection is no reason to stand: the others did not think so a moment ago.
        self._is_patient = is_patient

    def grants(self, replica: "Replica", candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return pre_vote and up_to_date and not self._leader_lives

    def fetched(self, now_ms: int) -> None:
        """The leader has answered."""
        self._leader_lives = True
        self._is_patient = False
        self.deadline_ms = now_ms + self._fetch_timeout_ms

    def leader_resigned(self, now_ms: int, backoff_ms: int) -> None:
        """It said so, and how long this replica leaves to better ones."""
        self._leader_lives = False
        self.deadline_ms = min(self.deadline_ms, now_ms + backoff_ms)

    def leader_refused(self, replica: "Replica") -> None:
        """Nobody listens at the leader's address: it is gone. A pre-vote shows whether the others think so
        too; if not, this replica has patience for once.
        """
        if not self._is_patient and replica.may_stand:
            rank = [voter.key.node_id for voter in replica.others if voter.key.node_id != replica.leader_id]
            ahead = sum(node_id < replica.key.node_id for node_id in rank)
            self.deadline_ms = min(self.deadline_ms, replica.now_ms + ahead * _STAGGER_MS)
        self._leader_lives = False

    def own_disk_was_busy(self, now_ms: int) -> None:
        """The leader is not to blame for the time that an fsync or a snapshot took."""
        if now_ms >= self.deadline_ms:
            self.deadline_ms = now_ms + self._fetch_timeout_ms

    def voter_was_asked_for(self, now_ms: int) -> None:
        self.update_voter_ms = now_ms + self._update_voter_interval_ms

    def poll(self, replica: "Replica") -> int | None:
        if replica.installing is not None or replica.durable_offset < replica.end_offset:
            return None
        deadlines: list[int] = []
        if replica.may_stand:
            if replica.now_ms >= self.deadline_ms:
                replica.become_prospective()
                return None
            deadlines.append(self.deadline_ms)
        leader = replica.leader
        if leader is not None and (make_request := next_voter_request(replica, self)) is not None:
            if replica.in_flight.ready_at(leader, replica.now_ms) <= replica.now_ms:
                self.voter_was_asked_for(replica.now_ms)
            deadlines.append(replica.ask(leader, make_request))
        if (
            leader is None
            or replica.in_flight.rests(leader, replica.now_ms)
            or replica.now_ms >= self.deadline_ms
        ):
            fetch_ms = fetch_from_anybody(replica, leader, self.fetching_snapshot)
        else:
            fetch_ms = fetch_from_leader(replica, leader, self.fetching_snapshot)
        if fetch_ms is not None:
            deadlines.append(fetch_ms)
        return min(deadlines, default=None)
