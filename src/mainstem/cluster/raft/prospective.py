"""Prospective (KIP-996): a voter asks whether it would win before it disturbs anybody with a new epoch."""

from typing import TYPE_CHECKING

from mainstem.cluster.raft.election import Election, ask_for_votes
from mainstem.cluster.raft.unattached import grants_while_free
from mainstem.cluster.raft.voters import ReplicaKey

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica


class Prospective:
    NAME = "prospective"

    def __init__(self, election: Election, deadline_ms: int) -> None:
        self.election = election
        self.deadline_ms = deadline_ms

    def grants(self, replica: "Replica", candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return grants_while_free(replica, candidate, up_to_date, pre_vote)

    def poll(self, replica: "Replica") -> int | None:
        if not replica.may_stand or self.election.is_lost or replica.now_ms >= self.deadline_ms:
            replica.give_up_standing()
            return None
        if self.election.is_won:
            replica.become_candidate()
            return None
        return min(self.deadline_ms, ask_for_votes(replica, self.election, pre_vote=True))
