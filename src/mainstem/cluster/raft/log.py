"""What the raft core reads of the metadata log and its snapshots. It writes through effects only.

Everything here shows the state after all effects of the last step were performed.
"""

from collections.abc import Sequence
from typing import Protocol

from mainstem.cluster.snapshot import SnapshotId


class RaftLog(Protocol):
    """The log of this node, its leader epochs and its snapshots."""

    @property
    def start_offset(self) -> int:
        """Of the first record that is still there, or would be."""

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets, whether what is below is durable or not."""

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record; of the newest snapshot when the log is empty; else 0."""

    def epoch_before(self, offset: int) -> int:
        """The epoch of the last record below `offset`, which lies in the log or at its ends; where the log
        begins there, that of the snapshot before it; else 0.
        """

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch in the log that is not above `epoch`, and the offset after its last record. For
        one below all of them: the epoch itself, and where the first one starts. (-1, -1) for one above all,
        or when there are none. As `storage.Log` answers.
        """

    def snapshot_ids(self) -> Sequence[SnapshotId]:
        """Complete snapshots, the oldest first."""

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        """In bytes; None when there is no such snapshot."""
