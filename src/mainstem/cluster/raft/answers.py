"""What every answer of another replica says besides: its epoch, and who leads in it."""

from typing import TYPE_CHECKING

from mainstem.cluster.raft.quorum_state import NOBODY
from mainstem.cluster.raft.voters import Endpoint
from mainstem.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from mainstem.cluster.raft.replica import Replica

_SAYS_WHO_LEADS = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)
ABOUT_THE_EPOCH = (*_SAYS_WHO_LEADS, ErrorCode.UNKNOWN_LEADER_EPOCH)


def common_answer(
    replica: "Replica", error: int, leader_id: int, epoch: int, endpoints: tuple[Endpoint, ...]
) -> bool | None:
    """Learn from it; then None to go on with the answer itself, else whether it was of use."""
    if epoch < replica.epoch or error == ErrorCode.UNKNOWN_LEADER_EPOCH:
        # The other side is behind: it learns from whoever tells it.
        return False
    if epoch > replica.epoch or error in _SAYS_WHO_LEADS:
        before = (replica.epoch, replica.leader_id)
        replica.meet_leader(epoch, leader_id, endpoints)
        # Nothing new: asking again at once would give the same.
        return (replica.epoch, replica.leader_id) != before
    if leader_id != NOBODY and not replica.leader_endpoints:
        # Perhaps an id was known from `quorum-state` alone, of a node that nothing here says the address of.
        replica.meet_leader(epoch, leader_id, endpoints)
        return None if error == ErrorCode.NONE else True
    return None if error == ErrorCode.NONE else False
