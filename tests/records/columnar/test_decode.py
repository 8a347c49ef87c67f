"""Columns hold what the project's own reader, kafka-python's and aiokafka's find in the same bytes."""

import pyarrow as pa
import pytest
from aiokafka.record.memory_records import MemoryRecords as AioRecords
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

from mainstem.records.batch import iter_headers, read_header, set_crc
from mainstem.records.columnar import decode
from mainstem.records.compression import Codec
from mainstem.records.record import Record
from tests.records.columnar.logs import (
    END,
    Piece,
    Row,
    build,
    pieces,
    rows_in,
    rows_of,
    simple,
    without_headers,
)


@settings(deadline=None, max_examples=60)
@given(pieces(), st.booleans())
def test_every_record_comes_out_as_the_record_reader_finds_it(piece: Piece, with_headers: bool) -> None:
    decoded = decode(piece.data, 0, END, headers=with_headers, aborted=None)
    expected = piece.all_rows
    assert rows_of(decoded) == (expected if with_headers else without_headers(expected))
    assert (decoded.headers is not None) == with_headers
    assert decoded.next_offset == (piece.next_offset if piece.batches else 0)


def _read_by_kafka_python(data: bytes) -> list[Row]:
    rows: list[Row] = []
    for batch in KafkaPythonRecords(data):
        if not batch.is_control_batch:
            rows += [
                (
                    found.offset,
                    found.timestamp,
                    found.timestamp_type,
                    found.key,
                    found.value,
                    found.headers or None,
                )
                for found in batch
            ]
    return rows


def _read_by_aiokafka(data: bytes) -> list[Row]:
    rows: list[Row] = []
    records = AioRecords(data)
    while records.has_next():
        batch = records.next_batch()
        if not batch.is_control_batch:
            for found in batch:
                headers = [(name, value) for name, value in found.headers] or None
                rows.append(
                    (found.offset, found.timestamp, found.timestamp_type, found.key, found.value, headers)
                )
    return rows


@settings(deadline=None, max_examples=60)
@given(pieces())
def test_other_readers_find_the_same(piece: Piece) -> None:
    found = rows_of(decode(piece.data, 0, END, headers=True, aborted=None))
    assert found == _read_by_kafka_python(piece.data)
    assert found == _read_by_aiokafka(piece.data)


@settings(deadline=None, max_examples=60)
@given(pieces(), st.data())
def test_only_the_offsets_asked_for_come(piece: Piece, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, piece.next_offset + 1))
    end = data.draw(st.integers(start, piece.next_offset + 3))
    decoded = decode(piece.data, start, end, headers=True, aborted=None)
    assert rows_of(decoded) == [row for row in piece.all_rows if start <= row[0] < end]
    # Everything before `next_offset` has been told, and there is no more to ask for than up to the end.
    expected = piece.next_offset if piece.batches else start
    assert decoded.next_offset == max(start, min(expected, end))


@settings(deadline=None, max_examples=60)
@given(pieces(), st.data())
def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch(piece: Piece, data: st.DataObject) -> None:
    cut = piece.data[: data.draw(st.integers(0, len(piece.data)))]
    decoded = decode(cut, 0, END, aborted=None)
    complete = [header for _, header in iter_headers(cut)]
    assert decoded.next_offset == (complete[-1].next_offset if complete else 0)
    assert rows_of(decoded) == [
        row for row in without_headers(piece.all_rows) if complete and row[0] <= complete[-1].last_offset
    ]


@settings(deadline=None, max_examples=60)
@given(pieces(), st.data())
def test_readers_of_committed_records_see_no_aborted_ones(piece: Piece, data: st.DataObject) -> None:
    """Wherever the fetch begins, also within a transaction."""
    first = data.draw(st.integers(0, len(piece.batches)))
    rest = piece.batches[first:]
    start = read_header(rest[0]).base_offset if rest else piece.next_offset
    aborted = data.draw(st.permutations(piece.aborted_from(start)))
    decoded = decode(b"".join(rest), start, END, headers=True, aborted=aborted)
    assert rows_of(decoded) == [row for row in piece.rows if row[0] >= start]
    assert decoded.next_offset == piece.next_offset


def test_no_bytes_are_no_records() -> None:
    decoded = decode(b"", 7, 100, headers=True)
    assert rows_of(decoded) == []
    assert decoded.next_offset == 7


def test_a_batch_that_compaction_emptied_is_passed_over() -> None:
    data = build([], 5, last_offset=9) + simple(1, 10)
    decoded = decode(data, 5, END)
    assert decoded.offset.to_pylist() == [10]
    assert decoded.next_offset == 11
    assert decode(build([], 5, last_offset=9), 5, END).next_offset == 10


def test_a_batch_behind_the_end_says_that_the_range_is_read() -> None:
    decoded = decode(simple(3, 100), 5, 50)
    assert len(decoded.value) == 0
    assert decoded.next_offset == 50


def test_types_are_those_that_spark_takes() -> None:
    decoded = decode(simple(3), 0, END, headers=True)
    assert decoded.headers is not None
    assert [column.type for column in (decoded.key, decoded.value, decoded.offset, decoded.timestamp_ms)] == [
        pa.binary(),
        pa.binary(),
        pa.int64(),
        pa.int64(),
    ]
    assert decoded.timestamp_type.type == pa.int32()
    assert decoded.headers.type == pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def test_broken_header_names_are_mended_as_java_does() -> None:
    batch = build([Record(0, 1, None, None, [("??", b"1")]), Record(1, 1, None, None, [("ok", b"2")])])
    position = batch.index(b"??")
    batch[position : position + 2] = b"\xff\xfe"
    set_crc(batch)
    decoded = decode(batch, 0, END, headers=True)
    assert [row[5] for row in rows_of(decoded)] == [[("\ufffd\ufffd", b"1")], [("ok", b"2")]]


@pytest.mark.parametrize("cuts", [False, True])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_what_would_become_too_large_comes_in_parts(codec: Codec, cuts: bool) -> None:
    data = b"".join(simple(10, base, 90, codec) for base in range(0, 100, 10))
    position, rows, calls = 0, [], 0
    while position < 100:
        decoded = decode(data, position, 100, size_max=2500)
        data = data[decoded.consumed if cuts else 0 :]
        rows += rows_of(decoded)
        assert position < decoded.next_offset
        position = decoded.next_offset
        calls += 1
    assert calls == 5
    assert rows == without_headers(
        [row for base in range(0, 100, 10) for row in rows_in(simple(10, base, 90))]
    )


def test_columns_live_on_when_the_fetched_bytes_are_written_again() -> None:
    data = bytearray(simple(5))
    decoded = decode(memoryview(data), 0, END)
    before = rows_of(decoded)
    data[:] = bytes(len(data))
    assert rows_of(decoded) == before
