"""Transactions in the storage tests: appending them, and reading as a consumer of committed records does."""

from mainstem.records.batch import TRANSACTIONAL_MASK, iter_headers
from mainstem.records.control import read_marker
from mainstem.records.record import iter_records
from mainstem.storage.log import AppendResult, Log
from tests.storage.log_helpers import NOW_MS, batch


def append_in_transaction(
    log: Log,
    producer_id: int,
    *,
    count: int = 1,
    epoch: int | None = None,
    sequence: int | None = None,
    value: bytes = b"value",
    leader_epoch: int = 0,
) -> AppendResult:
    """A verified batch of the producer's transaction; the next one of its epoch unless told otherwise."""
    entry = log.producers.state.entries.get(producer_id)
    epoch = epoch if epoch is not None else entry.epoch if entry else 0
    if sequence is None:
        sequence = entry.next_sequence if entry and entry.epoch == epoch else 0
    guard = log.producers.needs_verification(producer_id, epoch, sequence)
    data = batch(
        count,
        value=value,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=TRANSACTIONAL_MASK,
    )
    return log.append_as_leader(data, leader_epoch, NOW_MS, guard=guard)


def end(log: Log, producer_id: int, commit: bool, *, leader_epoch: int = 0) -> AppendResult:
    """End the producer's transaction as transactions version 2 does, with the next epoch."""
    entry = log.producers.state.entries.get(producer_id)
    epoch = entry.epoch + 1 if entry else 0
    return log.append_marker(producer_id, epoch, 0, commit, leader_epoch, NOW_MS)


def read_committed(log: Log, high_watermark: int, start: int, max_bytes: int = 1000) -> list[int]:
    """The offsets of the records that a consumer shows to its application, by the rules of Kafka's own: in
    each answer it drops the batches of a producer from the first offset of an aborted transaction on until
    its abort marker.
    """
    shown: list[int] = []
    position = start
    end_offset = log.last_stable_offset(high_watermark)
    while position < end_offset:
        result = log.read(position, max_bytes, end_offset)
        if result.records is None:
            break
        waiting = sorted(log.aborted_transactions(position, result.next_offset), key=lambda entry: entry[1])
        data = result.records.read()
        aborting: set[int] = set()
        for at, header in iter_headers(data):
            while waiting and waiting[0][1] <= header.last_offset:
                aborting.add(waiting.pop(0)[0])
            piece = data[at : at + header.size]
            if header.is_control:
                marker = read_marker(piece)
                if marker is not None and not marker.commit:
                    aborting.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborting):
                shown += [record.offset for record in iter_records(piece) if record.offset >= position]
        position = max(position, *(header.next_offset for _, header in iter_headers(data)))
    return shown
