"""The state machine of one voter: events in, effects out.

No clock, no file, no socket: the shell performs the effects in the order they are given and only then tells
the next event. An epoch is never used twice, whatever was lost: a new one is above the stored epoch and above
every epoch in the log.
"""

from collections.abc import Sequence

from msgspec import Struct

from mainstem.cluster.raft.control_records import LeaderChangeMessage, LeaderVoter
from mainstem.cluster.raft.quorum_state import QuorumState
from mainstem.cluster.raft.roles import Candidate, Leader, Unattached


class StoreQuorumState(Struct, frozen=True):
    """Make the state durable before anything else happens."""

    state: QuorumState


class AppendLeaderChange(Struct, frozen=True):
    """Begin the epoch in the log with this message."""

    epoch: int
    message: LeaderChangeMessage


Effect = StoreQuorumState | AppendLeaderChange


class Quorum:
    """One voter's view of the quorum."""

    def __init__(
        self, node_id: int, voters: Sequence[int], stored: QuorumState, log_epoch: int, log_end_offset: int
    ) -> None:
        if set(voters) != {node_id}:
            raise ValueError(
                f"the voters are {sorted(voters)}; only a quorum of node {node_id} alone is possible"
            )
        self.node_id = node_id
        self._voters = tuple(voters)
        self._log_end_offset = log_end_offset
        self.role: Unattached | Candidate | Leader = Unattached(max(stored.leader_epoch, log_epoch, 0))

    @property
    def epoch(self) -> int:
        return self.role.epoch

    @property
    def high_watermark(self) -> int:
        """Offsets below it are committed; 0 while this node does not lead."""
        return self.role.high_watermark if isinstance(self.role, Leader) else 0

    @property
    def leader_id(self) -> int:
        return self.node_id if isinstance(self.role, Leader) else -1

    def start(self) -> list[Effect]:
        """The node is up: stand for election at once. Alone, its own vote is the majority."""
        candidate = Candidate(self.role.epoch + 1, frozenset((self.node_id,)))
        self.role = candidate
        return self._lead(candidate) if candidate.has_won(self._voters) else []

    def log_is_durable_to(self, end_offset: int) -> bool:
        """This node's own log is on disk up to `end_offset`; returns whether more is committed now."""
        assert isinstance(self.role, Leader), "only a leader appends"
        return self.role.voter_is_durable_to(self.node_id, end_offset)

    def _lead(self, candidate: Candidate) -> list[Effect]:
        self.role = Leader(candidate.epoch, self._log_end_offset, self._voters)
        message = LeaderChangeMessage(
            leader_id=self.node_id,
            voters=[LeaderVoter(voter) for voter in self._voters],
            granting_voters=[LeaderVoter(voter) for voter in sorted(candidate.granted)],
        )
        return [
            StoreQuorumState(QuorumState(self.node_id, candidate.epoch)),
            AppendLeaderChange(candidate.epoch, message),
        ]
