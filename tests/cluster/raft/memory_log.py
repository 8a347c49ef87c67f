"""A metadata log in memory: what is written, what of it is durable, and snapshots that are plain bytes."""

from collections.abc import Sequence

from msgspec import Struct

from mainstem.cluster.batches import data_batch
from mainstem.cluster.raft.control_records import KRaftVersionRecord, VotersRecord, decode_control
from mainstem.cluster.raft.history import ControlHistory
from mainstem.cluster.raft.voters import VoterSet
from mainstem.cluster.snapshot import SnapshotId
from mainstem.records.batch import HEADER_SIZE, batch_size, read_header
from mainstem.records.record import iter_records


class Batch(Struct, frozen=True):
    base_offset: int
    end_offset: int
    epoch: int
    data: bytes


class StoredSnapshot(Struct, frozen=True):
    data: bytes
    kraft_version: int | None
    voters: VotersRecord | None


class MemoryLog:
    """Fulfils `RaftLog`. `crash` loses what is not durable."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.snapshots: dict[SnapshotId, StoredSnapshot] = {}
        self.start_offset = 0
        self.durable_offset = 0

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.start_offset

    @property
    def last_epoch(self) -> int:
        return self.epoch_before(self.end_offset)

    def epoch_before(self, offset: int) -> int:
        below = [batch.epoch for batch in self.batches if batch.base_offset < offset]
        older = [each.epoch for each in self.snapshot_ids() if each.offset <= offset]
        return below[-1] if below else older[-1] if older else 0

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        if not self.batches or epoch > self.batches[-1].epoch:
            return -1, -1
        known = [batch for batch in self.batches if batch.epoch <= epoch]
        return (known[-1].epoch, known[-1].end_offset) if known else (epoch, self.batches[0].base_offset)

    def snapshot_ids(self) -> Sequence[SnapshotId]:
        return sorted(self.snapshots)

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        found = self.snapshots.get(snapshot_id)
        return None if found is None else len(found.data)

    def append(self, data: bytes) -> None:
        while data:
            size = batch_size(data)
            assert HEADER_SIZE <= size <= len(data)
            header = read_header(data)
            assert header.base_offset == self.end_offset, "a hole, or something twice"
            assert header.partition_leader_epoch >= self.last_epoch
            self.batches.append(
                Batch(header.base_offset, header.next_offset, header.partition_leader_epoch, data[:size])
            )
            data = data[size:]

    def append_value(self, value: bytes, epoch: int) -> int:
        """One record of the controller."""
        self.append(bytes(data_batch([value], base_offset=self.end_offset, epoch=epoch, timestamp_ms=0)))
        return self.end_offset

    def read(self, offset: int, max_bytes: int) -> bytes:
        wanted = [batch.data for batch in self.batches if batch.end_offset > offset]
        return b"".join(wanted)[: max(max_bytes, len(wanted[0]) if wanted else 0)]

    def truncate(self, offset: int) -> None:
        assert offset >= self.start_offset
        self.batches = [batch for batch in self.batches if batch.end_offset <= offset]
        assert self.end_offset == offset, "a cut within a batch"
        self.durable_offset = min(self.durable_offset, offset)

    def start_at(self, snapshot_id: SnapshotId) -> None:
        self.batches = []
        self.start_offset = self.durable_offset = snapshot_id.offset

    def take_snapshot(self, offset: int, data: bytes, history: ControlHistory) -> SnapshotId:
        """A snapshot that ends at `offset`, and nothing left before it."""
        snapshot_id = SnapshotId(offset, self.epoch_before(offset))
        self.snapshots[snapshot_id] = StoredSnapshot(
            data, history.kraft_version_at(offset), history.voters_at(offset)
        )
        for old in [each for each in self.snapshots if each < snapshot_id]:
            del self.snapshots[old]
        self.batches = [batch for batch in self.batches if batch.end_offset > offset]
        self.start_offset = offset
        return snapshot_id

    def crash(self) -> None:
        self.batches = [batch for batch in self.batches if batch.end_offset <= self.durable_offset]

    def history(self, static: VoterSet) -> ControlHistory:
        """What the log says of voters, as the one who opens it finds out."""
        history = ControlHistory(static)
        if self.snapshots:
            newest = max(self.snapshots)
            stored = self.snapshots[newest]
            history.load_snapshot(newest.offset, stored.kraft_version, stored.voters)
        for batch in self.batches:
            if read_header(batch.data).is_control:
                for record in iter_records(batch.data):
                    message = decode_control(record)
                    if isinstance(message, KRaftVersionRecord | VotersRecord):
                        history.append(record.offset, message)
        return history
