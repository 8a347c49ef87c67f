"""Pieces of a log for the tests of the columnar readers: what is in them is known, and so is their bytes."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import cramjam
from hypothesis import strategies as st

from mainstem.records.batch import (
    BatchHeader,
    read_header,
    set_log_append_time,
    stamp_producer,
)
from mainstem.records.columnar import Decoded
from mainstem.records.compression import Codec, compress
from mainstem.records.control import build_marker
from mainstem.records.record import Record, assemble, encode_record, iter_records

END = 2**62

# offset, timestamp, timestamp type, key, value, headers (None for none)
Row = tuple[int, int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]


def rows_of(decoded: Decoded) -> list[Row]:
    """The columns as rows; they are checked to be sound Arrow arrays of one length."""
    columns = (decoded.offset, decoded.timestamp_ms, decoded.timestamp_type, decoded.key, decoded.value)
    for column in columns:
        column.validate(full=True)
        assert len(column) == len(decoded.offset)
    if decoded.headers is None:
        headers: list = [None] * len(decoded.offset)
    else:
        decoded.headers.validate(full=True)
        headers = [
            None if found is None else [(header["key"], header["value"]) for header in found]
            for found in decoded.headers.to_pylist()
        ]
    return list(zip(*(column.to_pylist() for column in columns), headers, strict=True))


def rows_in(batch: bytes | bytearray | memoryview) -> list[Row]:
    """The rows of one batch as the project's record reader sees them."""
    timestamp_type = read_header(batch).attributes >> 3 & 1
    return [
        (
            record.offset,
            record.timestamp,
            timestamp_type,
            record.key,
            record.value,
            list(record.headers) or None,
        )
        for record in iter_records(batch)
    ]


def without_headers(rows: Sequence[Row]) -> list[Row]:
    return [(*row[:5], None) for row in rows]


def build(
    records: Sequence[Record],
    base_offset: int = 0,
    *,
    codec: Codec = Codec.NONE,
    last_offset: int | None = None,
    raw_snappy: bool = False,
    log_append_time: int | None = None,
    producer: tuple[int, bool] | None = None,
) -> bytearray:
    """A batch whose records keep the offsets that they carry, with gaps where some are missing."""
    base_timestamp = records[0].timestamp if records else 1000
    body = b"".join(
        encode_record(record, record.offset - base_offset, record.timestamp - base_timestamp)
        for record in records
    )
    packed = bytes(cramjam.snappy.compress_raw(body)) if raw_snappy else compress(codec, body)
    if last_offset is None:
        last_offset = records[-1].offset
    batch = assemble(
        BatchHeader(
            base_offset=base_offset,
            batch_length=0,
            partition_leader_epoch=3,
            magic=2,
            crc=0,
            attributes=Codec.SNAPPY if raw_snappy else codec,
            last_offset_delta=last_offset - base_offset,
            base_timestamp=base_timestamp,
            max_timestamp=max((record.timestamp for record in records), default=base_timestamp),
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            record_count=len(records),
        ),
        packed,
    )
    if producer is not None:
        stamp_producer(batch, producer[0], 0, 0, transactional=producer[1])
    if log_append_time is not None:
        set_log_append_time(batch, 0, log_append_time)
    return batch


def simple(count: int, base_offset: int = 0, size: int = 10, codec: Codec = Codec.NONE) -> bytearray:
    records = [Record(base_offset + i, 1000 + i, b"k%d" % i, bytes([i % 256]) * size) for i in range(count)]
    return build(records, base_offset, codec=codec)


def repack(batch: bytearray, payload: bytes, **changes: int) -> bytearray:
    """The batch with other bytes behind its header, and a checksum that is right."""
    return assemble(read_header(batch)._replace(**changes), payload)


@dataclass
class Piece:
    """Some batches of a log one after another."""

    batches: list[bytearray] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    """What a reader of committed records sees."""
    aborts: list[tuple[int, int, int]] = field(default_factory=list)
    """Producer id, first offset and the marker's offset of each aborted transaction."""
    hidden: list[Row] = field(default_factory=list)
    """What only a reader of uncommitted records sees besides."""
    next_offset: int = 0

    @property
    def data(self) -> bytes:
        return b"".join(self.batches)

    def aborted_from(self, offset: int) -> list[tuple[int, int]]:
        """What a broker tells a fetch at `offset`: the transactions that are aborted there or later."""
        return [(producer_id, first) for producer_id, first, marker in self.aborts if marker >= offset]

    @property
    def all_rows(self) -> list[Row]:
        return sorted(self.rows + self.hidden)


optional_bytes = st.none() | st.binary(max_size=40) | st.integers(60, 9000).map(lambda size: b"v" * size)
headers = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=80)), max_size=3)
timestamps = st.integers(-1, 2**41) | st.sampled_from([-1, 0, 2**62, 1_700_000_000_000])


@st.composite
def records_from(draw: st.DrawFn, base_offset: int) -> tuple[list[Record], int]:
    """Records with gaps between them, as compaction leaves them, and the batch's last offset."""
    count = draw(st.integers(0, 12))
    records, offset = [], base_offset
    for _ in range(count):
        offset += draw(st.integers(0, 3) | st.sampled_from([0, 70, 9000]))
        record = Record(
            offset, draw(timestamps), draw(optional_bytes), draw(optional_bytes), tuple(draw(headers))
        )
        records.append(record)
        offset += 1
    return records, max(offset - 1, base_offset) + draw(st.integers(0, 2))


@st.composite
def pieces(draw: st.DrawFn) -> Piece:
    """Batches of all kinds: codecs, gaps, emptied ones, both timestamp types, and transactions of some
    producers, each of which is ended by a marker.
    """
    piece = Piece(next_offset=draw(st.integers(0, 5) | st.just(2**53)))
    open_transactions: dict[int, tuple[int, list[Row]]] = {}
    for _ in range(draw(st.integers(0, 8))):
        producer_id = draw(st.integers(0, 2))
        if producer_id in open_transactions and draw(st.booleans()):
            _end(piece, producer_id, open_transactions, commit=draw(st.booleans()))
            continue
        transactional = draw(st.booleans())
        records, last_offset = draw(records_from(piece.next_offset))
        batch = build(
            records,
            piece.next_offset,
            # An emptied batch is only a header, as Kafka's log cleaner writes it.
            codec=draw(st.sampled_from(Codec)) if records else Codec.NONE,
            last_offset=last_offset,
            raw_snappy=bool(records) and draw(st.sampled_from([False, False, True])),
            log_append_time=draw(st.none() | st.integers(0, 2**41)),
            producer=(producer_id, True)
            if transactional
            else draw(st.none() | st.just((producer_id, False))),
        )
        piece.batches.append(batch)
        if transactional:
            open_transactions.setdefault(producer_id, (piece.next_offset, []))[1].extend(rows_in(batch))
        else:
            piece.rows.extend(rows_in(batch))
        piece.next_offset = last_offset + 1
    for producer_id in list(open_transactions):
        _end(piece, producer_id, open_transactions, commit=draw(st.booleans()))
    piece.rows.sort()
    return piece


def _end(piece: Piece, producer_id: int, ongoing: dict[int, tuple[int, list[Row]]], *, commit: bool) -> None:
    first_offset, rows = ongoing.pop(producer_id)
    marker = build_marker(producer_id, 0, 0, commit, 1000)
    struct.pack_into(">q", marker, 0, piece.next_offset)
    piece.batches.append(marker)
    if commit:
        piece.rows.extend(rows)
    else:
        piece.hidden.extend(rows)
        piece.aborts.append((producer_id, first_offset, piece.next_offset))
    piece.next_offset += 1
