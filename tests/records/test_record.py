"""Records in and out of a batch, and refusal of bytes that are not what the header promises."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainstem.records.batch import HEADER_SIZE, read_header, set_crc
from mainstem.records.compression import Codec
from mainstem.records.record import (
    Record,
    RecordError,
    assemble,
    build_batch,
    build_batch_of_pairs,
    iter_records,
)

optional_bytes = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=10), optional_bytes), max_size=4)
records = st.lists(
    st.builds(Record, st.just(0), st.integers(-(2**40), 2**40), optional_bytes, optional_bytes, headers),
    min_size=1,
    max_size=20,
)


@given(records, st.sampled_from(Codec), st.integers(0, 2**62))
def test_records_come_out_as_they_went_in(
    given_records: list[Record], codec: Codec, base_offset: int
) -> None:
    data = build_batch(given_records, base_offset=base_offset, compression=codec)
    found = list(iter_records(data))
    assert [record.offset for record in found] == [base_offset + i for i in range(len(found))]
    expected = [record._replace(offset=base_offset + i) for i, record in enumerate(given_records)]
    assert [record._replace(headers=list(record.headers)) for record in found] == expected
    header = read_header(data)
    assert header.max_timestamp == max(record.timestamp for record in given_records)
    assert header.base_timestamp == given_records[0].timestamp


def test_a_batch_of_nothing_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="at least one"):
        build_batch([])


def test_garbage_behind_a_valid_crc_is_a_record_error_and_nothing_else() -> None:
    chance = random.Random(4)
    good = build_batch([Record(0, 5, b"key", b"value" * 20, [("h", b"v")])] * 5)
    for codec in Codec:
        for _ in range(300):
            payload = bytearray(build_batch([*iter_records(good)], compression=codec)[HEADER_SIZE:])
            for _ in range(chance.randrange(1, 4)):
                payload[chance.randrange(len(payload))] = chance.randrange(256)
            header = read_header(good)._replace(attributes=int(codec))
            try:
                assert len(list(iter_records(assemble(header, payload)))) == 5
            except RecordError:
                pass


@pytest.mark.parametrize(("count", "fits"), [(5, True), (4, False), (6, False), (2**31 - 1, False)])
def test_the_record_count_must_be_right(count: int, fits: bool) -> None:
    data = build_batch([Record(0, 5, None, b"v")] * 5)
    data[57:61] = count.to_bytes(4)
    set_crc(data)
    if fits:
        assert len(list(iter_records(data))) == 5
    else:
        with pytest.raises(RecordError):
            list(iter_records(data))


def test_a_small_batch_that_decompresses_to_too_much_is_refused() -> None:
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        data = build_batch([Record(0, 0, None, bytes(3_000_000))], compression=codec)
        assert len(data) < 200_000
        assert len(list(iter_records(data, max_size=3_000_100))) == 1
        with pytest.raises(RecordError, match="more than"):
            list(iter_records(data, max_size=2_000_000))


def test_a_short_or_foreign_batch_is_refused() -> None:
    data = build_batch([Record(0, 0, None, b"v")])
    with pytest.raises(RecordError, match="shorter"):
        list(iter_records(data[:30]))
    with pytest.raises(RecordError, match="bytes"):
        list(iter_records(data[:-2]))
    data[16] = 1
    with pytest.raises(RecordError, match="format 1"):
        list(iter_records(data))


@given(
    st.lists(st.tuples(st.binary(max_size=3000), st.none() | st.binary(max_size=3000)), min_size=1),
    st.sampled_from(list(Codec)),
)
def test_a_batch_of_pairs_is_the_batch_of_their_records(
    pairs: list[tuple[bytes, bytes | None]], codec: Codec
) -> None:
    records = [Record(0, 1_700_000_000_000, key, value) for key, value in pairs]
    assert build_batch_of_pairs(pairs, 1_700_000_000_000, codec) == build_batch(records, compression=codec)
