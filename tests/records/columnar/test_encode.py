"""Batches built from columns hold their rows, by the project's reader and by kafka-python's."""

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords

from mainstem.records.batch import crc_is_valid, read_header, stamp_producer
from mainstem.records.columnar import decode, encode
from mainstem.records.columnar.decode import HEADERS_TYPE
from mainstem.records.compression import Codec
from mainstem.records.record import iter_records
from tests.records.columnar.logs import END, headers, optional_bytes, rows_of

Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None, int]

rows = st.lists(
    st.tuples(optional_bytes, optional_bytes, st.none() | headers, st.integers(-1, 2**62)), max_size=40
)
codecs = st.sampled_from(["none", "gzip", "snappy", "lz4", "zstd"])


def _headers(lists: list[list[tuple[str, bytes | None]] | None]) -> pa.ListArray:
    return pa.array(
        [
            None if found is None else [{"key": name, "value": value} for name, value in found]
            for found in lists
        ],
        HEADERS_TYPE,
    )


def _encode(given_rows: list[Row], partitions: list[int], **options: Any) -> dict[int, list[bytearray]]:
    return encode(
        pa.array([row[0] for row in given_rows], pa.binary()),
        pa.array([row[1] for row in given_rows], pa.binary()),
        _headers([row[2] for row in given_rows]),
        pa.array([row[3] for row in given_rows], pa.int64()),
        np.array(partitions, np.int32),
        **options,
    )


def _found(batches: list[bytearray]) -> list[Row]:
    return [
        (record.key, record.value, list(record.headers), record.timestamp)
        for batch in batches
        for record in iter_records(batch)
    ]


@settings(deadline=None, max_examples=60)
@given(rows, codecs, st.integers(61, 20_000), st.data())
def test_each_partition_gets_its_rows_in_order(
    given_rows: list[Row], codec: str, batch_bytes: int, data: st.DataObject
) -> None:
    partitions = [data.draw(st.sampled_from([0, 1, 7, 900])) for _ in given_rows]
    encoded = _encode(given_rows, partitions, codec=codec, batch_bytes=batch_bytes)
    assert set(encoded) == set(partitions)
    for partition, batches in encoded.items():
        expected = [row for row, place in zip(given_rows, partitions, strict=True) if place == partition]
        assert _found(batches) == [(key, value, found or [], at) for key, value, found, at in expected]
        for batch in batches:
            _check_header(batch, codec, batch_bytes)


def _check_header(batch: bytearray, codec: str, batch_bytes: int) -> None:
    header = read_header(batch)
    records = list(iter_records(batch))
    assert crc_is_valid(batch)
    assert header.size == len(batch)
    assert Codec(header.attributes) == Codec[codec.upper()]
    assert (header.base_offset, header.last_offset_delta, header.record_count) == (
        0,
        len(records) - 1,
        len(records),
    )
    assert [record.offset for record in records] == list(range(len(records)))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert header.base_timestamp == records[0].timestamp
    assert header.max_timestamp == max(record.timestamp for record in records)
    if codec == "none":
        assert len(batch) <= batch_bytes or len(records) == 1


@settings(deadline=None, max_examples=60)
@given(rows.filter(bool), codecs)
def test_kafka_python_and_the_columnar_reader_read_what_is_built(given_rows: list[Row], codec: str) -> None:
    (batch,) = _encode(given_rows, [0] * len(given_rows), codec=codec, batch_bytes=10_000_000)[0]
    (found,) = MemoryRecords(bytes(batch))
    assert found.validate_crc()
    read = [(record.key, record.value, record.headers, record.timestamp) for record in found]
    assert read == [(key, value, pairs or [], at) for key, value, pairs, at in given_rows]
    assert [(row[3], row[4], row[5], row[1]) for row in rows_of(decode(batch, 0, END, headers=True))] == [
        (key, value, pairs or None, at) for key, value, pairs, at in given_rows
    ]


@settings(deadline=None, max_examples=60)
@given(rows.filter(bool), st.data())
def test_a_slice_of_a_column_is_taken_as_it_is(given_rows: list[Row], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(given_rows) - 1))
    stop = data.draw(st.integers(start + 1, len(given_rows)))
    table = pa.table(
        {
            "key": pa.array([row[0] for row in given_rows], pa.binary()),
            "value": pa.array([row[1] for row in given_rows], pa.large_binary()),
            "headers": _headers([row[2] for row in given_rows]),
            "timestamp": pa.array([row[3] for row in given_rows], pa.int64()),
        }
    ).slice(start, stop - start)
    partitions = np.zeros(stop - start, np.int32)
    key, value, found, at = table.columns
    encoded = encode(key, value, found, at, partitions)
    part = [(row[0], row[1], row[2] or [], row[3]) for row in given_rows[start:stop]]
    assert _found(encoded[0]) == part
    key, value, found, at = (column.chunk(0) for column in table.columns)
    assert _found(encode(key, value, found, at, partitions)[0]) == part


def test_columns_may_be_missing_text_or_all_null() -> None:
    before = time.time_ns() // 1_000_000
    places = np.zeros(2, np.int32)
    (batch,) = encode(None, pa.array(["ä", None]), None, None, places)[0]
    after = time.time_ns() // 1_000_000
    first, second = iter_records(batch)
    assert (first.key, first.value, second.value) == (None, "ä".encode(), None)
    assert before <= first.timestamp == second.timestamp <= after
    (batch,) = encode(
        pa.nulls(2, pa.binary()), pa.nulls(2), _headers([None, None]), pa.array([None, 5]), places
    )[0]
    first, second = iter_records(batch)
    assert (first.key, first.value, second.timestamp) == (None, None, 5)
    assert first.timestamp >= before
    (batch,) = encode(None, None, None, np.array([3, 4]), places)[0]
    assert [record.timestamp for record in iter_records(batch)] == [3, 4]


def test_nothing_is_encoded_of_nothing() -> None:
    assert (
        encode(pa.array([], pa.binary()), pa.array([], pa.binary()), None, None, np.empty(0, np.int32)) == {}
    )


@pytest.mark.parametrize(
    ("keys", "headers", "partitions", "reason"),
    [
        ([b"a"], None, [0, 1], "1 values for 2 partitions"),
        ([b"a", b"b"], [[{"key": None, "value": b"x"}], None], [0, 1], "no key"),
        ([b"a", b"b"], [None], [0, 1], "1 headers for 2 partitions"),
        ([b"a", b"b"], None, [0, -1], "not those of a topic"),
        ([b"a", b"b"], None, [0, 2**31 - 1], "not those of a topic"),
    ],
)
def test_what_cannot_be_encoded_is_refused(
    keys: list[bytes], headers: list | None, partitions: list[int], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        encode(
            pa.array(keys, pa.binary()),
            None,
            None if headers is None else pa.array(headers, HEADERS_TYPE),
            None,
            np.array(partitions, np.int32),
        )


def test_a_producer_is_stamped_on_built_batches() -> None:
    (batch,) = encode(
        None, pa.array([b"x"] * 3, pa.binary()), None, None, np.zeros(3, np.int32), codec="lz4"
    )[0]
    before = list(iter_records(batch))
    stamp_producer(batch, 7, 2, 40, transactional=True)
    header = read_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 40)
    assert header.is_transactional
    assert crc_is_valid(batch)
    assert list(iter_records(batch)) == before
