"""Batches of the metadata log, replayed into an image.

Transactions are resolved here: what stands between their records reaches the image when they end, or never.
"""

from mainstem.cluster.batches import read_batches
from mainstem.cluster.delta import MetadataChanges, MetadataDelta
from mainstem.cluster.image import MetadataImage
from mainstem.cluster.raft.control_records import KRaftVersionRecord, decode_control
from mainstem.cluster.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    decode_record,
)
from mainstem.cluster.topics_delta import ReplayError
from mainstem.protocol.primitives import Buffer
from mainstem.records.record import Record


class Replayer:
    """Takes the log from its beginning, or from a snapshot, in any number of pieces."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self._transaction: list[MetadataRecord] | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction was begun and not ended: its author crashed, and it must be aborted."""
        return self._transaction is not None

    def end_transaction(self) -> None:
        """It was aborted by a record that is not replayed here."""
        self._transaction = None

    def replay(self, data: Buffer) -> MetadataChanges:
        """Replay whole batches; what they change. ProtocolError or ReplayError when that is not possible."""
        delta = MetadataDelta(self.image)
        offset, epoch, timestamp_ms = self.image.offset, self.image.epoch, self.image.timestamp_ms
        for header, is_control, records in read_batches(data):
            if header.base_offset <= offset:
                continue  # a read begins with the batch that holds the wanted offset
            for record in records:
                if is_control:
                    self._control(delta, record)
                else:
                    self._record(delta, decode_record(record.value or b""))
            offset, epoch = header.last_offset, header.partition_leader_epoch
            timestamp_ms = header.max_timestamp
        self.image = delta.build(offset, epoch, timestamp_ms)
        return delta.changes(self.image)

    def _control(self, delta: MetadataDelta, record: Record) -> None:
        message = decode_control(record)
        if isinstance(message, KRaftVersionRecord):
            delta.set_kraft_version(message.k_raft_version)

    def _record(self, delta: MetadataDelta, record: MetadataRecord) -> None:
        kind = type(record)
        if kind is BeginTransactionRecord:
            if self._transaction is not None:
                raise ReplayError("a metadata transaction begins inside another")
            self._transaction = []
        elif kind is EndTransactionRecord or kind is AbortTransactionRecord:
            if self._transaction is None:
                raise ReplayError("a metadata transaction ends that has not begun")
            if kind is EndTransactionRecord:
                delta.replay_all(self._transaction)
            self._transaction = None
        elif self._transaction is not None:
            self._transaction.append(record)
        else:
            delta.replay(record)
