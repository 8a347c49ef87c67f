"""The count of one election, binding or not: who of the voters said yes or no."""

from functools import partial
from typing import TYPE_CHECKING

from mainstem.cluster.raft.framing import vote_request
from mainstem.cluster.raft.voters import ReplicaKey, Voter, VoterSet

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica


class Election:
    """Begins with the vote of the one who stands, if it has one: who is about to be removed may stand, but
    does not count.
    """

    def __init__(self, voters: VoterSet, candidate: ReplicaKey) -> None:
        self._voters = voters
        self._granted = set() if voters.find(candidate) is None else {candidate.node_id}
        self._rejected: set[int] = set()

    def granted_by(self, node_id: int) -> None:
        if node_id in self._voters.ids:
            self._granted.add(node_id)
            self._rejected.discard(node_id)

    def rejected_by(self, node_id: int) -> None:
        if node_id in self._voters.ids and node_id not in self._granted:
            self._rejected.add(node_id)

    @property
    def is_won(self) -> bool:
        return len(self._granted) >= self._voters.majority

    @property
    def is_lost(self) -> bool:
        """Whether too many said no for a majority to be possible."""
        return len(self._voters) - len(self._rejected) < self._voters.majority

    @property
    def silent(self) -> list[Voter]:
        """Who has not answered yet."""
        return [
            voter
            for voter in self._voters
            if voter.key.node_id not in self._granted and voter.key.node_id not in self._rejected
        ]

    @property
    def granting(self) -> VoterSet:
        return VoterSet(tuple(voter for voter in self._voters if voter.key.node_id in self._granted))


def ask_for_votes(replica: "Replica", election: Election, pre_vote: bool) -> int:
    """Ask the voters that have not answered; when to look again."""
    again_ms = replica.now_ms + replica.settings.request_timeout_ms
    for voter in election.silent:
        destination = replica.destination(voter)
        if destination is not None:
            again_ms = min(
                again_ms, replica.ask(destination, partial(vote_request, replica, voter, pre_vote))
            )
    return again_ms
