"""What a simulated node has on disk: its quorum state, its log, its snapshots, and what of that is synced.

Batches are real ones. Each is kept with a digest of the whole log up to its end, so that two logs can be
compared at one place. A kill of the process takes nothing; a power loss takes back any part of what was not
synced, truncations too.
"""

import pickle
import random
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from mainstem.cluster.raft.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    VotersRecord,
    decode_control,
)
from mainstem.cluster.raft.quorum_state import QuorumState
from mainstem.cluster.snapshot import SnapshotId
from mainstem.protocol.primitives import Buffer
from mainstem.records.batch import batch_size, crc_is_valid, read_header
from mainstem.records.record import iter_records


class Batch(NamedTuple):
    base_offset: int
    end_offset: int
    epoch: int
    data: bytes
    digest: int
    # Each with its offset.
    control_records: tuple[tuple[int, ControlRecord], ...]


class Snapshot(NamedTuple):
    """Whose log it stands for, and what that says of the quorum."""

    id: SnapshotId
    digest: int
    kraft_version: int | None
    voters: VotersRecord | None

    def encode(self) -> bytes:
        return pickle.dumps(self)

    @staticmethod
    def decode(data: bytes) -> "Snapshot":
        found = pickle.loads(data)
        assert isinstance(found, Snapshot)
        return found


BEFORE_ALL = Snapshot(SnapshotId(0, 0), 0, None, None)


class Disk:
    """The directory of the metadata log. Reads as `RaftLog` says."""

    def __init__(self, node_id: int, directory_id: bytes, formatted: Snapshot = BEFORE_ALL) -> None:
        self.node_id = node_id
        self.directory_id = directory_id
        self.quorum_state: QuorumState | None = None
        self.snapshots = [formatted] if formatted is not BEFORE_ALL else []
        self.fetched: dict[SnapshotId, bytearray] = {}
        self.batches: list[Batch] = []
        self.durable_end = 0
        # The log begins behind what this one stands for.
        self._start = formatted
        # Counts the changes of the log and the snapshots.
        self.changes = 0
        # What truncations took away that a power loss may bring back.
        self._cut: list[Batch] = []

    # ---- what the core reads

    @property
    def start_offset(self) -> int:
        return self._start.id.offset

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.start_offset

    @property
    def last_epoch(self) -> int:
        return self.batches[-1].epoch if self.batches else self._start.id.epoch

    def epoch_before(self, offset: int) -> int:
        return next(
            (batch.epoch for batch in reversed(self.batches) if batch.base_offset < offset),
            self._start.id.epoch,
        )

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        if not self.batches or epoch > self.last_epoch:
            return -1, -1
        found = (epoch, self.batches[0].base_offset)
        for batch in self.batches:
            if batch.epoch > epoch:
                break
            found = (batch.epoch, batch.end_offset)
        return found

    def snapshot_ids(self) -> list[SnapshotId]:
        return [snapshot.id for snapshot in self.snapshots]

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        snapshot = self.snapshot(snapshot_id)
        return None if snapshot is None else len(snapshot.encode())

    # ---- reading

    def snapshot(self, snapshot_id: SnapshotId) -> Snapshot | None:
        return next((snapshot for snapshot in self.snapshots if snapshot.id == snapshot_id), None)

    def read(self, offset: int, bytes_max: int) -> bytes:
        """Whole batches from the one with `offset` on, at least one if there is one."""
        found = b""
        for batch in self.batches:
            if batch.end_offset > offset:
                if found and len(found) + len(batch.data) > bytes_max:
                    break
                found += batch.data
        return found

    def digest_at(self, offset: int) -> int | None:
        """The digest of the log below `offset`; None where no batch ends there."""
        if offset == self.start_offset:
            return self._start.digest
        return next((batch.digest for batch in self.batches if batch.end_offset == offset), None)

    def quorum_records(self, end_offset: int | None = None) -> list[tuple[int, ControlRecord]]:
        """Those about the quorum that the log has below `end_offset`, behind the newest snapshot there."""
        stop = self.end_offset if end_offset is None else end_offset
        base = self.base_of(stop)
        return [
            (offset, record)
            for batch in self.batches
            if base.id.offset <= batch.base_offset
            for offset, record in batch.control_records
            if offset < stop and isinstance(record, KRaftVersionRecord | VotersRecord)
        ]

    def voters_at(self, end_offset: int) -> VotersRecord | None:
        """The voters that the log below an offset says there are."""
        records = [r for _, r in self.quorum_records(end_offset) if isinstance(r, VotersRecord)]
        return records[-1] if records else self.base_of(end_offset).voters

    def kraft_version_at(self, end_offset: int) -> int | None:
        levels = [
            r.k_raft_version for _, r in self.quorum_records(end_offset) if isinstance(r, KRaftVersionRecord)
        ]
        return levels[-1] if levels else self.base_of(end_offset).kraft_version

    def base_of(self, end_offset: int) -> Snapshot:
        """The newest snapshot up to there."""
        return next((each for each in reversed(self.snapshots) if each.id.offset <= end_offset), BEFORE_ALL)

    def state_at(self, end_offset: int) -> Snapshot | None:
        """The snapshot of the log below an offset; None where no batch ends there."""
        digest = self.digest_at(end_offset)
        if digest is None:
            return None
        snapshot_id = SnapshotId(end_offset, self.epoch_before(end_offset))
        return Snapshot(snapshot_id, digest, self.kraft_version_at(end_offset), self.voters_at(end_offset))

    # ---- writing

    def append(self, records: Buffer) -> list[Batch]:
        """Whole batches, to the end."""
        added = list(parse_batches(records, self.batches[-1].digest if self.batches else self._start.digest))
        for batch in added:
            assert batch.base_offset == self.end_offset, "a gap in the log"
            self.batches.append(batch)
        self.changes += 1
        return added

    def truncate(self, offset: int) -> list[Batch]:
        """Returns what went."""
        kept = [batch for batch in self.batches if batch.end_offset <= offset]
        gone = self.batches[len(kept) :]
        if offset < self.durable_end:
            self._cut = [batch for batch in gone if batch.end_offset <= self.durable_end]
            self.durable_end = kept[-1].end_offset if kept else self.start_offset
        self.batches = kept
        self.changes += 1
        return gone

    def sync(self, end_offset: int) -> None:
        self.durable_end = max(self.durable_end, min(end_offset, self.end_offset))
        self._cut = []

    def take_snapshot(self, end_offset: int) -> bool:
        snapshot = self.state_at(end_offset)
        if snapshot is None or snapshot.id.offset <= max(
            (each.offset for each in self.snapshot_ids()), default=0
        ):
            return False
        self.snapshots.append(snapshot)
        return True

    def install(self, snapshot: Snapshot) -> None:
        """A snapshot of the leader's in place of the log."""
        self.snapshots = [snapshot]
        self.batches, self._cut = [], []
        self._start, self.durable_end = snapshot, snapshot.id.offset
        self.changes += 1

    def trim(self) -> bool:
        """Forget what the newest snapshot has, and the snapshots before it."""
        newest = self.snapshots[-1] if self.snapshots else BEFORE_ALL
        if not self.start_offset < newest.id.offset <= self.durable_end:
            return False
        self.batches = [batch for batch in self.batches if batch.base_offset >= newest.id.offset]
        self.snapshots = [newest]
        self._start = newest
        return True

    def lose_power(self, rng: random.Random) -> None:
        kept = [batch for batch in self.batches if batch.end_offset <= self.durable_end]
        unsynced = self.batches[len(kept) :]
        if self._cut and rng.random() < 0.5:
            self.batches = kept + self._cut
        else:
            self.batches = kept + unsynced[: rng.randint(0, len(unsynced))]
        self._cut = []
        self.fetched.clear()


def parse_batches(records: Buffer, digest: int = 0) -> Iterator[Batch]:
    """Whole batches, behind a log with that digest."""
    position = 0
    while position < len(records):
        data = bytes(records[position : position + batch_size(records, position)])
        assert crc_is_valid(data), "a damaged batch is appended"
        header = read_header(data)
        digest = zlib.crc32(data, digest)
        control = tuple(_control_records(data)) if header.is_control else ()
        yield Batch(
            header.base_offset, header.next_offset, header.partition_leader_epoch, data, digest, control
        )
        position += len(data)


def _control_records(data: bytes) -> Iterator[tuple[int, ControlRecord]]:
    for record in iter_records(data):
        if (message := decode_control(record)) is not None:
            yield record.offset, message
