"""Unattached: the epoch is known, its leader is not, or not how to reach it. Voters stand when time is up;
everybody asks around who leads.
"""

from typing import TYPE_CHECKING

from mainstem.cluster.raft.fetching import fetch_from_anybody
from mainstem.cluster.raft.quorum_state import NOBODY
from mainstem.cluster.raft.voters import ReplicaKey

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica

# So often nobody may be found while the controllers are still being started.
_PATIENCE = 3


def grants_while_free(replica: "Replica", candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
    """The rule for those who follow nobody: a pre-vote for any log that is not behind; a vote once in an
    epoch, and not where a leader is known already.
    """
    if pre_vote:
        return up_to_date
    if replica.voted is not None:
        return replica.voted.matches(candidate)
    return replica.leader_id == NOBODY and up_to_date


class Unattached:
    NAME = "unattached"

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        # How often an observer has found nobody in that time.
        self._times_up = 0

    def grants(self, replica: "Replica", candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return grants_while_free(replica, candidate, up_to_date, pre_vote)

    def poll(self, replica: "Replica") -> int | None:
        if replica.may_stand:
            if replica.now_ms >= self.deadline_ms:
                replica.become_prospective()
                return None
            ask_again_ms = fetch_from_anybody(replica)
            return self.deadline_ms if ask_again_ms is None else min(self.deadline_ms, ask_again_ms)
        if replica.now_ms >= self.deadline_ms and not replica.stopping and replica.installing is None:
            self.deadline_ms = replica.now_ms + replica.random_election_timeout_ms()
            self._times_up += 1
            if self._times_up > _PATIENCE:
                replica.complain(
                    "nobody that could be asked knows who leads the quorum: see whether controllers run at "
                    "the addresses in controller.quorum.bootstrap.servers or controller.quorum.voters"
                )
        return fetch_from_anybody(replica)
