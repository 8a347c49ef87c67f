"""What a partition remembers of its producers: sequences, epochs, open transactions, and snapshots on disk.

For each producer id the last five batches are kept, so that a retry of one of them is answered with the
offset it got the first time. The rules are Kafka's. Nothing here writes to the log.
"""

import logging
import os
import re
import struct
from collections import deque
from collections.abc import Iterable

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import (
    CONTROL_MASK,
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_MASK,
    BatchHeader,
)
from mainstem.records.control import EndTxnMarker
from mainstem.records.crc import crc32c
from mainstem.storage.files.checkpoints import read_file, write_atomically
from mainstem.storage.files.files import Files
from mainstem.storage.producers.transaction_index import AbortedTransaction
from mainstem.storage.producers.verification import VerificationGuard

logger = logging.getLogger(__name__)

BATCHES_RETAINED = 5
NO_OFFSET = -1
SNAPSHOT_SUFFIX = ".snapshot"
_SNAPSHOT_NAME = re.compile(r"\d{20}\.snapshot")
_SNAPSHOT_VERSION = 1
_SNAPSHOT_HEADER = struct.Struct(">hIi")  # version, CRC of what follows it, number of producers
_SNAPSHOT_CRC_END = 6
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")

# (first sequence, last sequence, last offset, offset delta, timestamp) of an appended batch
BatchMetadata = tuple[int, int, int, int, int]


class SnapshotError(ValueError):
    """A producer snapshot that cannot be trusted."""


class ProducerEntry:
    """The state of one producer id in one partition."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "epoch",
        "last_timestamp",
        "next_sequence",
        "transactional",
    )

    def __init__(self, epoch: int = NO_PRODUCER_EPOCH) -> None:
        self.epoch = epoch
        self.batches: list[BatchMetadata] = []
        self.next_sequence = 0
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        self.current_txn_first_offset = NO_OFFSET
        # What the transactional bit of the next batch must be: set exactly while a transaction is open.
        self.transactional = 0

    @property
    def last_sequence(self) -> int:
        return self.batches[-1][1] if self.batches else NO_SEQUENCE

    def add(
        self, epoch: int, first_sequence: int, offset_delta: int, last_offset: int, timestamp: int
    ) -> None:
        """Remember an appended batch; a new epoch forgets those of the old one."""
        batches = self.batches
        if epoch != self.epoch:
            self.epoch = epoch
            batches.clear()
        last_sequence = first_sequence
        if first_sequence != NO_SEQUENCE:
            last_sequence = (first_sequence + offset_delta) & MAX_SEQUENCE
        batches.append((first_sequence, last_sequence, last_offset, offset_delta, timestamp))
        if len(batches) > BATCHES_RETAINED:
            del batches[0]
        self.next_sequence = (last_sequence + 1) & MAX_SEQUENCE
        self.last_timestamp = timestamp

    def begin(self, first_offset: int) -> None:
        """A transaction of this producer is open from here on."""
        self.current_txn_first_offset = first_offset
        self.transactional = TRANSACTIONAL_MASK

    def marker(self, epoch: int, coordinator_epoch: int, timestamp: int) -> None:
        """A transaction of this producer has ended; a marker of a newer epoch restarts the sequence."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()
            self.next_sequence = 0
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_first_offset = NO_OFFSET
        self.transactional = 0
        self.last_timestamp = timestamp


class ProducerState:
    """All producers of a partition. `entries` is read directly by the append path."""

    __slots__ = ("completed", "entries", "guards", "open_transactions")

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        # Producer ids by the first offset of their open transaction. Offsets only grow, so the first comes
        # first.
        self.open_transactions: dict[int, int] = {}
        # (first offset, marker's offset) of ended ones whose marker the high watermark has not passed yet.
        self.completed: deque[tuple[int, int]] = deque()
        self.guards: dict[int, VerificationGuard] = {}

    # ---- checks

    def duplicate_of(self, header: BatchHeader) -> BatchMetadata | None:
        """The batch that this one repeats, if it is among the last five of its producer."""
        entry = self.entries.get(header.producer_id)
        if entry is not None and entry.epoch == header.producer_epoch:
            for batch in entry.batches:
                if batch[0] == header.base_sequence and batch[1] == header.last_sequence:
                    return batch
        return None

    def check_epoch(self, producer_id: int, epoch: int, partition: str) -> None:
        """INVALID_PRODUCER_EPOCH for an epoch older than the last."""
        entry = self.entries.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} sent epoch {epoch} to {partition}, "
                f"which is older than the last seen epoch {entry.epoch}",
            )

    def check_sequence(self, header: BatchHeader, partition: str) -> None:
        """OUT_OF_ORDER_SEQUENCE_NUMBER for a client's batch that is not the next, of an epoch that is not
        older. An unknown producer may start at any sequence: its state may have expired.
        """
        producer_id, sequence = header.producer_id, header.base_sequence
        entry = self.entries.get(producer_id)
        guard = self.guards.get(producer_id)
        if guard is not None and guard.supports_epoch_bump and sequence and not (entry and entry.batches):
            reason = f"{sequence}, not 0, although nothing is known of it"
        elif guard is not None and sequence > guard.lowest_sequence:
            reason = f"{sequence}, {guard.lowest_sequence} comes before it"
        elif entry is None or entry.epoch == NO_PRODUCER_EPOCH:
            return
        elif header.producer_epoch == entry.epoch:
            if sequence == entry.next_sequence:
                return
            reason = f"{sequence}, {entry.next_sequence} is next (last was {entry.last_sequence})"
        elif sequence:
            reason = f"{sequence}, not 0, in the new epoch {header.producer_epoch}"
        else:
            return
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id} sent to {partition} sequence {reason}",
        )

    # ---- transactions

    def guard_for(
        self, producer_id: int, epoch: int, sequence: int, supports_epoch_bump: bool
    ) -> VerificationGuard | None:
        """None when the producer's transaction is open here, else the guard that its next batch must show."""
        entry = self.entries.get(producer_id)
        if entry is not None and entry.transactional and entry.epoch == epoch:
            return None
        guard = self.guards.get(producer_id)
        if guard is None:
            guard = self.guards[producer_id] = VerificationGuard(epoch, sequence, supports_epoch_bump)
        else:
            guard.asked_again(epoch, sequence)
        return guard

    def may_begin(self, producer_id: int, base_sequence: int, guard: VerificationGuard) -> bool:
        """Whether a transactional batch that is the next of its producer begins the transaction of which the
        guard says that it is open. While a guard is valid, none is open here.
        """
        return self.guards.get(producer_id) is guard and base_sequence <= guard.lowest_sequence

    def begin_transaction(self, producer_id: int, entry: ProducerEntry, first_offset: int) -> None:
        """A batch of a transaction is in the log; it is open from here on, unless it was before."""
        self.guards.pop(producer_id, None)
        if not entry.transactional:
            entry.begin(first_offset)
            self.open_transactions[first_offset] = producer_id

    def ended_by_marker(self, producer_id: int, marker_offset: int) -> AbortedTransaction | None:
        """What a marker of this producer at this offset ends; None when no transaction is open."""
        entry = self.entries.get(producer_id)
        if entry is None or not entry.transactional:
            return None
        first = entry.current_txn_first_offset
        stable = next((offset for offset in self.open_transactions if offset != first), marker_offset + 1)
        return AbortedTransaction(producer_id, first, marker_offset, stable)

    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction begins that is open, or ended but not known to be committed."""
        first = next(iter(self.open_transactions), None)
        for begin, _ in self.completed:
            if first is None or begin < first:
                first = begin
        return first

    def last_stable_offset(self, high_watermark: int, log_start_offset: int) -> int:
        """The first offset that is not stable; the high watermark when all before it are."""
        if self.completed:
            self.forget_completed(high_watermark)
        first = self.first_unstable_offset()
        return high_watermark if first is None else min(max(first, log_start_offset), high_watermark)

    def forget_completed(self, high_watermark: int) -> None:
        """The markers before the high watermark are there to stay."""
        completed = self.completed
        while completed and completed[0][1] < high_watermark:
            completed.popleft()

    # ---- what is in the log

    def record(self, header: BatchHeader, marker: EndTxnMarker | None = None) -> AbortedTransaction | None:
        """Take over a batch that is in the log: appended, copied from the leader, or found by recovery.
        Returns the transaction that it has aborted, if it did.
        """
        if header.attributes & CONTROL_MASK:
            if marker is None:
                return None
            return self.end_transaction(
                header.producer_id, header.producer_epoch, marker, header.base_offset, header.max_timestamp
            )
        entry = self.entries.get(header.producer_id)
        if entry is None:
            entry = self.entries[header.producer_id] = ProducerEntry()
        if header.attributes & TRANSACTIONAL_MASK:
            self.begin_transaction(header.producer_id, entry, header.base_offset)
        entry.add(
            header.producer_epoch,
            header.base_sequence,
            header.last_offset_delta,
            header.last_offset,
            header.max_timestamp,
        )
        return None

    def end_transaction(
        self, producer_id: int, producer_epoch: int, marker: EndTxnMarker, marker_offset: int, timestamp: int
    ) -> AbortedTransaction | None:
        """Take over a marker that is in the log. Returns the transaction that it has aborted, if it did."""
        aborted = None if marker.commit else self.ended_by_marker(producer_id, marker_offset)
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry()
        if entry.transactional:
            first_offset = entry.current_txn_first_offset
            self.open_transactions.pop(first_offset, None)
            self.completed.append((first_offset, marker_offset))
        entry.marker(producer_epoch, marker.coordinator_epoch, timestamp)
        self.guards.pop(producer_id, None)
        return aborted

    def remove_expired(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that were silent for so long and have no open transaction; returns how many."""
        expired = [
            producer_id
            for producer_id, entry in self.entries.items()
            if not entry.transactional and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.entries[producer_id]
        if self.guards:
            for producer_id, guard in list(self.guards.items()):
                if guard.is_forgotten(now_ms, expiration_ms):
                    del self.guards[producer_id]
        return len(expired)

    # ---- snapshots

    def encode(self) -> bytes:
        """Version 1 of Kafka's producer snapshot: each producer with its last batch."""
        body = bytearray(_SNAPSHOT_HEADER.pack(_SNAPSHOT_VERSION, 0, len(self.entries)))
        for producer_id, entry in self.entries.items():
            _, last_sequence, last_offset, offset_delta, _ = (
                entry.batches[-1] if entry.batches else (NO_SEQUENCE, NO_SEQUENCE, NO_OFFSET, 0, 0)
            )
            body += _SNAPSHOT_ENTRY.pack(
                producer_id,
                entry.epoch,
                last_sequence,
                last_offset,
                offset_delta,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.current_txn_first_offset,
            )
        crc = crc32c(memoryview(body)[_SNAPSHOT_CRC_END:])
        _SNAPSHOT_HEADER.pack_into(body, 0, _SNAPSHOT_VERSION, crc, len(self.entries))
        return bytes(body)

    @classmethod
    def decode(cls, data: bytes) -> "ProducerState":
        """The state in a snapshot; SnapshotError when version, CRC or length are wrong."""
        if len(data) < _SNAPSHOT_HEADER.size:
            raise SnapshotError(f"{len(data)} bytes are too few")
        version, crc, count = _SNAPSHOT_HEADER.unpack_from(data)
        if version != _SNAPSHOT_VERSION:
            raise SnapshotError(f"version {version} is not known")
        if crc32c(memoryview(data)[_SNAPSHOT_CRC_END:]) != crc:
            raise SnapshotError("the checksum is wrong")
        if len(data) != _SNAPSHOT_HEADER.size + count * _SNAPSHOT_ENTRY.size:
            raise SnapshotError(f"{count} producers do not fit {len(data)} bytes")
        state = cls()
        for fields in _SNAPSHOT_ENTRY.iter_unpack(memoryview(data)[_SNAPSHOT_HEADER.size :]):
            producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, txn_first = (
                fields
            )
            entry = ProducerEntry(epoch)
            if last_offset >= 0:
                known = last_sequence != NO_SEQUENCE
                first_sequence = (last_sequence - delta) & MAX_SEQUENCE if known else NO_SEQUENCE
                entry.add(epoch, first_sequence, delta, last_offset, timestamp)
            entry.last_timestamp = timestamp
            entry.coordinator_epoch = coordinator_epoch
            if txn_first >= 0:
                entry.begin(txn_first)
            state.entries[producer_id] = entry
        open_now = [(e.current_txn_first_offset, p) for p, e in state.entries.items() if e.transactional]
        state.open_transactions = dict(sorted(open_now))
        return state


def snapshot_path(directory: str, offset: int) -> str:
    return os.path.join(directory, f"{offset:020d}{SNAPSHOT_SUFFIX}")


def snapshot_offsets(names: Iterable[str]) -> list[int]:
    """The offsets of the snapshots among these file names, ascending."""
    return sorted(int(name[:20]) for name in names if _SNAPSHOT_NAME.fullmatch(name))


def write_snapshot(files: Files, directory: str, offset: int, state: ProducerState) -> None:
    """The state before `offset`. Not synced here: that comes with the fsync of the log."""
    write_atomically(files, snapshot_path(directory, offset), state.encode(), sync=False)


def load_snapshot(files: Files, directory: str, offset: int) -> ProducerState | None:
    """The state in a snapshot, or None (and a warning) when it is damaged or gone."""
    path = snapshot_path(directory, offset)
    try:
        return ProducerState.decode(read_file(files, path))
    except FileNotFoundError:
        return None
    except SnapshotError as error:
        logger.warning("ignoring the producer snapshot %s: %s", path, error)
        return None
