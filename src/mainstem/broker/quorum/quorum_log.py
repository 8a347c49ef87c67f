"""The metadata log and its snapshots as the quorum uses them: read by the raft core, written by its driver.

It knows nothing of what the records say. Nobody else may touch `__cluster_metadata-0`.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from mainstem.broker.metadata.snapshots import SnapshotStore, SnapshotWriter
from mainstem.cluster.raft.quorum_state import QUORUM_STATE_FILE, QuorumState, encode_quorum_state
from mainstem.cluster.snapshot import SnapshotId
from mainstem.protocol.primitives import Buffer
from mainstem.storage.files.checkpoints import write_atomically
from mainstem.storage.files.file_range import FileRange
from mainstem.storage.files.files import Files
from mainstem.storage.log import Log


class QuorumLog:
    """The raft core's `RaftLog`, and what changes it."""

    def __init__(self, log: Log, snapshots: SnapshotStore) -> None:
        self.log = log
        self.snapshots = snapshots
        self._snapshot_ids = tuple(snapshots.ids())
        # The snapshot that is being fetched, if any.
        self._fetched: tuple[SnapshotId, SnapshotWriter] | None = None

    @property
    def files(self) -> Files:
        return self.log.environment.files

    @property
    def folder(self) -> Path:
        return Path(self.log.directory)

    # ---- what the raft core reads

    @property
    def start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def last_epoch(self) -> int:
        latest = self.log.leader_epochs.latest_epoch
        if latest >= 0:
            return latest
        return self._snapshot_ids[-1].epoch if self._snapshot_ids else 0

    def epoch_before(self, offset: int) -> int:
        if offset > self.start_offset:
            return max(0, self.log.leader_epochs.epoch_for_offset(offset - 1))
        return next((each.epoch for each in reversed(self._snapshot_ids) if each.offset <= offset), 0)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return self.log.end_offset_for_epoch(epoch)

    def snapshot_ids(self) -> Sequence[SnapshotId]:
        return self._snapshot_ids

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        if snapshot_id not in self._snapshot_ids:
            return None
        try:
            return self.snapshots.size(snapshot_id)
        except FileNotFoundError:
            return None

    # ---- the log

    @property
    def is_durable(self) -> bool:
        """Whether everything in the log is on disk for good."""
        return self.log.recovery_point >= self.log.log_end_offset

    def append(self, records: Buffer, now_ms: int) -> None:
        """Whole batches, as they are. KafkaError when the disk refuses; the log is then as before."""
        end_offset = self.end_offset
        try:
            self.log.append_as_follower(memoryview(records), now_ms)
        except BaseException:
            if self.end_offset != end_offset:
                # A part of several batches: it goes as a whole, or the next start would abort a transaction.
                self.log.truncate_to(end_offset, now_ms)
            raise

    def read(self, offset: int, bytes_max: int, end_offset: int | None = None) -> FileRange | None:
        """Whole batches, one at least where there is one."""
        return self.log.read(offset, bytes_max, end_offset).records

    def store_quorum_state(self, state: QuorumState) -> None:
        """Durable when it returns. Only calls that drop the GIL: fit for a thread."""
        write_atomically(self.files, self.folder / QUORUM_STATE_FILE, encode_quorum_state(state))

    # ---- snapshots

    def snapshots_changed(self) -> None:
        """One was taken, or old ones were removed."""
        self._snapshot_ids = tuple(self.snapshots.ids())

    def read_snapshot(self, snapshot_id: SnapshotId, position: int, bytes_max: int) -> bytes:
        """Bytes of its file; FileNotFoundError when it is gone."""
        fd = self.files.open(self.snapshots.path(snapshot_id), os.O_RDONLY | os.O_CLOEXEC)
        try:
            return self.files.pread(fd, bytes_max, position)
        finally:
            self.files.close(fd)

    def write_fetched(self, snapshot_id: SnapshotId, position: int, data: Buffer) -> None:
        """Of a snapshot that another node sends; position 0 begins it."""
        if position == 0:
            self.drop_fetched()
            self._fetched = (snapshot_id, self.snapshots.writer(snapshot_id))
        assert self._fetched is not None, "a snapshot begins at its beginning"
        assert self._fetched[0] == snapshot_id, "one snapshot at a time"
        self._fetched[1].write(data)

    def drop_fetched(self) -> None:
        """Remove what there is of it."""
        if self._fetched is not None:
            self._fetched[1].close()
            self._fetched = None

    def take_fetched(self) -> SnapshotWriter:
        """The snapshot that is complete; its `finish` and `close` are the caller's now."""
        assert self._fetched is not None, "nothing was fetched"
        _, writer = self._fetched
        self._fetched = None
        return writer

    def begin_at(self, snapshot_id: SnapshotId, now_ms: int) -> None:
        """The log is empty from now on, and goes on where this snapshot ends; those before it are of no
        use.
        """
        self.log.truncate_fully_and_start_at(snapshot_id.offset, now_ms)
        for other in self.snapshots.ids():
            if other < snapshot_id:
                self.snapshots.remove(other)
        self.snapshots_changed()
