"""Metadata records as record batches, and batches as records.

What is appended together takes effect together. One batch is whole or torn, so it needs nothing more; what
does not fit into one is put between the records of a transaction.
"""

from collections.abc import Iterator, Sequence

from mainstem.cluster.raft.control_records import ControlRecord, decode_control
from mainstem.cluster.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
)
from mainstem.cluster.records.versions import has_transactions, record_encoder
from mainstem.protocol.errors import ErrorCode, KafkaError, ProtocolError
from mainstem.protocol.primitives import Buffer
from mainstem.records.batch import (
    CONTROL_MASK,
    HEADER_SIZE,
    BatchHeader,
    batch_size,
    crc_is_valid,
    read_header,
)
from mainstem.records.record import Record, RecordError, build_batch, iter_records

# Well below the least segment size and the largest batch (8 MiB) of Kafka's own metadata log.
BATCH_BYTES_MAX = 4 * 1024 * 1024
# More than the framing of any record adds to its value.
_RECORD_OVERHEAD = 32


def metadata_batches(
    records: Sequence[MetadataRecord],
    *,
    base_offset: int,
    epoch: int,
    timestamp_ms: int,
    metadata_version: int,
    bytes_max: int = BATCH_BYTES_MAX,
) -> tuple[bytearray, int]:
    """The batches of one change, as they are written at a level of `metadata.version`, and the offset after
    them. KafkaError when so large a change is not possible at that level.
    """
    encode = record_encoder(metadata_version)
    values = [encode(record) for record in records]
    groups = list(_groups(values, bytes_max))
    if len(groups) > 1:
        if not has_transactions(metadata_version):
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"{len(records)} changes at once are too many at metadata.version {metadata_version}",
            )
        values = [encode(BeginTransactionRecord()), *values, encode(EndTransactionRecord())]
        groups = list(_groups(values, bytes_max))
    data = bytearray()
    offset = base_offset
    for group in groups:
        data += data_batch(group, base_offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)
        offset += len(group)
    return data, offset


def data_batch(values: Sequence[bytes], *, base_offset: int, epoch: int, timestamp_ms: int) -> bytearray:
    """One batch of framed metadata records."""
    return build_batch(
        [Record(0, timestamp_ms, None, value) for value in values],
        base_offset=base_offset,
        leader_epoch=epoch,
    )


def control_records(data: Buffer) -> Iterator[tuple[int, ControlRecord]]:
    """What the quorum's control records say, each with its offset; batches of other records are passed over
    unread. Raises ProtocolError for bytes that are not batches, or are no control records that are known.
    """
    pos, view = 0, memoryview(data)
    while len(view) - pos >= HEADER_SIZE:
        size = batch_size(view, pos)
        if size < HEADER_SIZE or size > len(view) - pos:
            raise ProtocolError(f"the batch at byte {pos} of {len(view)} is torn or damaged")
        if read_header(view, pos).attributes & CONTROL_MASK:
            for _, _, records in read_batches(view[pos : pos + size]):
                for record in records:
                    message = decode_control(record)
                    if message is not None:
                        yield record.offset, message
        pos += size


def _groups(values: Sequence[bytes], bytes_max: int) -> Iterator[list[bytes]]:
    group: list[bytes] = []
    room = bytes_max
    for value in values:
        cost = len(value) + _RECORD_OVERHEAD
        if group and cost > room:
            yield group
            group, room = [], bytes_max
        group.append(value)
        room -= cost
    if group:
        yield group


def read_batches(data: Buffer) -> Iterator[tuple[BatchHeader, bool, list[Record]]]:
    """Every batch in `data`: its header, whether it holds control records, and its records.

    Raises ProtocolError for bytes that are not whole, undamaged batches.
    """
    pos, end = 0, len(data)
    view = memoryview(data)
    while pos < end:
        if end - pos < HEADER_SIZE or batch_size(view, pos) > end - pos or not crc_is_valid(view, pos):
            raise ProtocolError(f"the batch at byte {pos} of {end} is torn or damaged")
        header = read_header(view, pos)
        try:
            records = list(iter_records(view[pos : pos + header.size]))
        except RecordError as error:
            raise ProtocolError(
                f"the batch at offset {header.base_offset} cannot be read: {error}"
            ) from error
        yield header, bool(header.attributes & CONTROL_MASK), records
        pos += header.size
