"""Resigned: led this epoch and does no more. It tells the voters to elect another without waiting for a
time-out, and stands itself only in a later epoch.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mainstem.cluster.raft.effects import Finished
from mainstem.cluster.raft.framing import end_quorum_epoch_request
from mainstem.cluster.raft.voters import ReplicaKey

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica


class Resigned:
    NAME = "resigned"

    def __init__(self, successors: Sequence[ReplicaKey], deadline_ms: int) -> None:
        self._successors = tuple(successors)
        self._untold = {successor.node_id for successor in successors}
        self.deadline_ms = deadline_ms

    def grants(self, replica: "Replica", candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        return up_to_date and pre_vote

    def told(self, node_id: int) -> None:
        self._untold.discard(node_id)

    @property
    def is_done(self) -> bool:
        return not self._untold

    def poll(self, replica: "Replica") -> int | None:
        if replica.now_ms >= self.deadline_ms:
            # Whoever still asks this node in the old epoch learns that it is over.
            replica.become_unattached(replica.epoch + 1)
            return None
        deadline_ms = self.deadline_ms
        for node_id in sorted(self._untold):
            voter = replica.history.voters.get(node_id)
            destination = None if voter is None else replica.destination(voter)
            if destination is not None:
                again_ms = replica.ask(
                    destination, lambda: end_quorum_epoch_request(replica, self._successors)
                )
                deadline_ms = min(deadline_ms, again_ms)
        return deadline_ms


def finish(replica: "Replica") -> bool:
    """After a stop: whether everything is said."""
    if isinstance(replica.role, Resigned) and not replica.role.is_done:
        return False
    replica.effects.append(Finished())
    return True
