"""Bytes that are no batches, or lie about what they hold: always CorruptRecordsError or the right answer.

The last test runs in a process of its own, where reading one byte behind the data is fatal.
"""

import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainstem.records.batch import HEADER_SIZE, RECORD_COUNT_POSITION, iter_headers, read_header, set_crc
from mainstem.records.columnar import CorruptRecordsError, decode
from mainstem.records.compression import Codec, compress
from mainstem.records.record import DECOMPRESSED_SIZE_MAX, Record, RecordError
from tests.records.columnar.logs import (
    END,
    Piece,
    Row,
    build,
    pieces,
    repack,
    rows_in,
    rows_of,
    simple,
    without_headers,
)


def _expected(data: bytes) -> list[Row] | None:
    """The rows as the project's record reader finds them, None if it refuses a batch of them."""
    rows: list[Row] = []
    for position, header in iter_headers(data):
        if header.last_offset_delta < 0:
            return None
        if header.is_control:
            continue
        try:
            found = rows_in(data[position : position + header.size])
        except RecordError:
            return None
        if header.record_count < 0 or any(
            not header.base_offset <= row[0] <= header.last_offset for row in found
        ):
            return None
        rows += [(row[0], _wrapped(row[1]), *row[2:]) for row in found]
    return rows


def _wrapped(timestamp: int) -> int:
    """A sum of 64-bit numbers as Java computes it."""
    return (timestamp + 2**63) % 2**64 - 2**63


def _check(data: bytes) -> None:
    expected = _expected(data)
    for with_headers in (False, True):
        try:
            found = rows_of(decode(data, 0, END, headers=with_headers, aborted=None))
        except CorruptRecordsError:
            assert expected is None
        else:
            assert expected is not None
            assert found == (expected if with_headers else without_headers(expected))


@settings(deadline=None, max_examples=60)
@given(pieces(), st.data())
def test_a_changed_byte_is_found_by_the_checksum(piece: Piece, data: st.DataObject) -> None:
    if not piece.batches:
        return
    damaged = bytearray(piece.data)
    # In front of the magic nothing is checked by a sum: offset, length and leader epoch.
    positions = [
        place
        for start, header in iter_headers(piece.data)
        for place in range(start + 16, start + header.size)
    ]
    damaged[data.draw(st.sampled_from(positions))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptRecordsError):
        decode(damaged, 0, END, aborted=None)


@settings(deadline=None, max_examples=150)
@given(pieces(), st.randoms(use_true_random=False))
def test_changed_bytes_behind_a_valid_checksum(piece: Piece, chance: random.Random) -> None:
    batches = [bytearray(batch) for batch in piece.batches]
    for batch in batches:
        for _ in range(chance.randrange(3)):
            batch[chance.randrange(21, len(batch))] = chance.choice(
                [0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)]
            )
        set_crc(batch)
    _check(b"".join(batches))


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=300))
def test_random_bytes(data: bytes) -> None:
    try:
        assert decode(data, 0, END, headers=True).next_offset == 0
    except CorruptRecordsError:
        pass


@pytest.mark.parametrize("codec", Codec)
def test_every_byte_of_a_record_changed_in_every_way(codec: Codec) -> None:
    record = Record(0, 70, b"key", b"value", [("name", b"1"), ("n", None)])
    good = build([record, record._replace(offset=1, timestamp=2**40)])
    for position in range(HEADER_SIZE, len(good)):
        for byte in range(256) if codec is Codec.NONE else (0, 1, 0x7F, 0x80, 0xFF):
            body = bytearray(good[HEADER_SIZE:])
            body[position - HEADER_SIZE] = byte
            _check(bytes(repack(good, compress(codec, bytes(body)), attributes=codec)))


@pytest.mark.parametrize("count", [-1, -(2**31), 2, 5, 2**31 - 1])
def test_a_number_of_records_that_is_a_lie(count: int) -> None:
    batch = simple(3, 40)
    struct.pack_into(">i", batch, RECORD_COUNT_POSITION, count)
    set_crc(batch)
    with pytest.raises(CorruptRecordsError, match="offset 40"):
        decode(batch, 0, END)


@pytest.mark.parametrize(
    ("position", "field", "value", "reason"),
    [
        (8, ">i", 48, "less than that of its header"),
        (8, ">i", -1, "less than that of its header"),
        (16, ">b", 0, "not version 2"),
        (16, ">b", 1, "not version 2"),
        (16, ">b", 3, "not version 2"),
        (23, ">i", -1, "run backwards"),
        (0, ">q", -5, "run backwards"),
        (0, ">q", 2**63 - 2, "run backwards"),
    ],
)
def test_a_header_that_cannot_be(position: int, field: str, value: int, reason: str) -> None:
    batch = simple(3, 40)
    struct.pack_into(field, batch, position, value)
    set_crc(batch) if position != 8 else None
    with pytest.raises(CorruptRecordsError, match=reason):
        decode(simple(2) + batch, 0, END)


def test_a_record_outside_the_offsets_of_its_batch() -> None:
    batch = simple(3, 40)
    struct.pack_into(">i", batch, 23, 1)
    set_crc(batch)
    with pytest.raises(CorruptRecordsError, match="outside the offsets"):
        decode(batch, 0, END)


def test_an_unknown_codec() -> None:
    batch = repack(simple(3, 40), b"\x00" * 50, attributes=5)
    with pytest.raises(CorruptRecordsError, match=r"offset 40 .* unknown compression, 5"):
        decode(batch, 0, END)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
def test_a_batch_that_would_become_gigabytes(codec: Codec) -> None:
    bomb = compress(codec, bytes(DECOMPRESSED_SIZE_MAX + 1), 1)
    assert len(bomb) < 2_000_000
    with pytest.raises(CorruptRecordsError, match="more than"):
        decode(repack(simple(3, 40), bomb, attributes=codec), 0, END)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_what_does_not_decompress(codec: Codec) -> None:
    with pytest.raises(CorruptRecordsError, match="offset 40"):
        decode(repack(simple(3, 40), b"\x9b" * 50, attributes=codec), 0, END)


def test_an_abort_marker_that_is_no_record() -> None:
    batch = repack(simple(1, 40), b"\x9b" * 50, attributes=0x30, producer_id=1)
    with pytest.raises(CorruptRecordsError, match="offset 40"):
        decode(batch, 0, END, aborted=[(1, 40)])


def test_garbage_of_batches_that_are_not_wanted_is_not_looked_at() -> None:
    control = repack(simple(1, 40), b"\x9b" * 50, attributes=0x30)
    assert read_header(control).is_control
    assert decode(control + simple(2, 41), 0, END).offset.to_pylist() == [41, 42]


# It compiles all kernels anew, which takes long where many tests run at once.
@pytest.mark.timeout(400)
def test_no_byte_outside_the_data_is_touched(tmp_path: Path) -> None:
    """numba checks the indices of arrays, and the page behind the data cannot be read."""
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    script = Path(__file__).with_name("guarded_decode.py")
    done = subprocess.run(
        [sys.executable, str(script)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=390,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("decoded ")
