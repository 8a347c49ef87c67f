"""What a partition remembers of its idempotent producers: the sequence check, and its snapshots on disk.

For each producer id the last five batches are kept, so that a retry of one of them is answered with the
offset it got the first time. The rules are Kafka's. Nothing here writes to the log.
"""

import logging
import os
import re
import struct
from collections.abc import Iterable

from crc32c import crc32c

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import (
    CONTROL_MASK,
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_MASK,
    BatchHeader,
)
from mainstem.storage.checkpoints import write_atomically

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
    )

    def __init__(self, epoch: int = NO_PRODUCER_EPOCH) -> None:
        self.epoch = epoch
        self.batches: list[BatchMetadata] = []
        self.next_sequence = 0
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        self.current_txn_first_offset = NO_OFFSET

    @property
    def last_sequence(self) -> int:
        return self.batches[-1][1] if self.batches else NO_SEQUENCE

    def add(self, epoch: int, batch: BatchMetadata) -> None:
        """Remember an appended batch; a new epoch forgets those of the old one."""
        batches = self.batches
        if epoch != self.epoch:
            self.epoch = epoch
            batches.clear()
        batches.append(batch)
        if len(batches) > BATCHES_RETAINED:
            del batches[0]
        self.next_sequence = (batch[1] + 1) & MAX_SEQUENCE
        self.last_timestamp = batch[4]

    def marker(self, epoch: int, coordinator_epoch: int, timestamp: int) -> None:
        """A transaction of this producer has ended; a marker of a newer epoch restarts the sequence."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()
            self.next_sequence = 0
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_first_offset = NO_OFFSET
        self.last_timestamp = timestamp


class ProducerState:
    """All producers of a partition. `entries` is read directly by the append path."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}

    def check(
        self, producer_id: int, epoch: int, base_sequence: int, last_sequence: int, partition: str
    ) -> BatchMetadata | None:
        """Decide on a client's batch: None to append it, the metadata of the same batch appended before, or a
        KafkaError. An unknown producer may start at any sequence: its state may have expired.
        """
        entry = self.entries.get(producer_id)
        if entry is None or entry.epoch == NO_PRODUCER_EPOCH:
            return None
        if epoch == entry.epoch:
            for batch in entry.batches:
                if batch[0] == base_sequence and batch[1] == last_sequence:
                    return batch
            if base_sequence == entry.next_sequence:
                return None
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} sent sequence {base_sequence} to {partition}, "
                f"{entry.next_sequence} is next (last was {entry.last_sequence})",
            )
        if epoch < entry.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} sent epoch {epoch} to {partition}, "
                f"which is older than the last seen epoch {entry.epoch}",
            )
        if base_sequence != 0:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} began epoch {epoch} in {partition} with sequence "
                f"{base_sequence}, not 0",
            )
        return None

    def record(self, header: BatchHeader, coordinator_epoch: int = -1) -> None:
        """Take over a batch that is in the log: appended, copied from the leader, or found by recovery."""
        entry = self.entries.get(header.producer_id)
        if entry is None:
            entry = self.entries[header.producer_id] = ProducerEntry()
        if header.attributes & CONTROL_MASK:
            entry.marker(header.producer_epoch, coordinator_epoch, header.max_timestamp)
            return
        if header.attributes & TRANSACTIONAL_MASK and entry.current_txn_first_offset == NO_OFFSET:
            entry.current_txn_first_offset = header.base_offset
        entry.add(
            header.producer_epoch,
            (
                header.base_sequence,
                header.last_sequence,
                header.last_offset,
                header.last_offset_delta,
                header.max_timestamp,
            ),
        )

    def remove_expired(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that were silent for so long and have no open transaction; returns how many."""
        expired = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.current_txn_first_offset == NO_OFFSET and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.entries[producer_id]
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
                first_sequence = (last_sequence - delta) & MAX_SEQUENCE
                entry.add(epoch, (first_sequence, last_sequence, last_offset, delta, timestamp))
            entry.last_timestamp = timestamp
            entry.coordinator_epoch = coordinator_epoch
            entry.current_txn_first_offset = txn_first
            state.entries[producer_id] = entry
        return state


def snapshot_path(directory: str, offset: int) -> str:
    return os.path.join(directory, f"{offset:020d}{SNAPSHOT_SUFFIX}")


def snapshot_offsets(names: Iterable[str]) -> list[int]:
    """The offsets of the snapshots among these file names, ascending."""
    return sorted(int(name[:20]) for name in names if _SNAPSHOT_NAME.fullmatch(name))


def write_snapshot(directory: str, offset: int, state: ProducerState) -> None:
    """The state before `offset`. It is only worth its time: without it the log is read again, so no fsync."""
    write_atomically(snapshot_path(directory, offset), state.encode(), sync=False)


def load_snapshot(directory: str, offset: int) -> ProducerState | None:
    """The state in a snapshot, or None (and a warning) when it is damaged or gone."""
    path = snapshot_path(directory, offset)
    try:
        with open(path, "rb") as file:
            return ProducerState.decode(file.read())
    except FileNotFoundError:
        return None
    except SnapshotError as error:
        logger.warning("ignoring the producer snapshot %s: %s", path, error)
        return None
