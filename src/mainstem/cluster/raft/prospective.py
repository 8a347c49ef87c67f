"""Prospective (KIP-996): a voter asks whether it would win before it disturbs anybody with a new epoch."""

from typing import TYPE_CHECKING

from mainstem.cluster.raft.election import Election, ask_for_votes
from mainstem.cluster.raft.unattached import grants_while_free
from mainstem.cluster.raft.voters import ReplicaKey

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica

# So many elections may come to nothing while the others are still being started.
_PATIENCE = 2


class Prospective:
    NAME = "prospective"

    def __init__(self, election: Election, deadline_ms: int) -> None:
        self.election = election
        self.deadline_ms = deadline_ms

    def grants(self, replica: "Replica", candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return grants_while_free(replica, candidate, up_to_date, pre_vote)

    def poll(self, replica: "Replica") -> int | None:
        if not replica.may_stand or self.election.is_lost or replica.now_ms >= self.deadline_ms:
            if replica.may_stand and replica.lost_elections >= _PATIENCE and not self.election.is_lost:
                self._complain(replica)
            replica.give_up_standing()
            return None
        if self.election.is_won:
            replica.become_candidate()
            return None
        return min(self.deadline_ms, ask_for_votes(replica, self.election, pre_vote=True))

    def _complain(self, replica: "Replica") -> None:
        silent = [voter.key.node_id for voter in self.election.silent]
        replica.complain(
            f"the quorum has no leader, and the voters {silent} do not answer; it takes "
            f"{replica.history.voters.majority} of {len(replica.history.voters)} to elect one"
        )
