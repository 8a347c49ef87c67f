"""Candidate: a voter that would win stands for election in an epoch of its own."""

from typing import TYPE_CHECKING

from mainstem.cluster.raft.election import Election, ask_for_votes
from mainstem.cluster.raft.voters import ReplicaKey

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica


class Candidate:
    NAME = "candidate"

    def __init__(self, election: Election, deadline_ms: int) -> None:
        self.election = election
        # When it gives up; sooner once the election is lost.
        self.deadline_ms = deadline_ms
        self._backs_off = False

    def grants(self, replica: "Replica", candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return up_to_date and pre_vote

    def poll(self, replica: "Replica") -> int | None:
        if self.election.is_won:
            replica.become_leader(self.election)
            return None
        if self.election.is_lost and not self._backs_off:
            # Two that split the votes must not meet again at once.
            self._backs_off = True
            replica.lost_elections += 1
            self.deadline_ms = min(self.deadline_ms, replica.now_ms + replica.election_backoff_ms())
        if not replica.may_stand:
            replica.become_unattached(replica.epoch)
            return None
        if replica.now_ms >= self.deadline_ms:
            replica.become_prospective()
            return None
        if self._backs_off:
            return self.deadline_ms
        return min(self.deadline_ms, ask_for_votes(replica, self.election, pre_vote=False))
