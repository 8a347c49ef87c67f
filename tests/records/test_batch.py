"""The batch header: where its fields are, what the CRC covers, what may be patched without touching it."""

import pytest

from mainstem.records import batch
from mainstem.records.batch import BatchHeader, crc_is_valid, iter_headers, read_header, stamp_producer
from mainstem.records.compression import Codec
from mainstem.records.record import Record, build_batch, iter_records


def one_batch(count: int = 3) -> bytearray:
    records = [Record(0, 1000 + i, b"k%d" % i, b"value") for i in range(count)]
    return build_batch(records, producer_id=7, producer_epoch=2, base_sequence=40)


def test_header_fields_are_where_their_positions_say() -> None:
    data = one_batch()
    header = read_header(data)
    assert header.size == len(data) == batch.batch_size(data)
    assert int.from_bytes(data[batch.PRODUCER_ID_POSITION :][:8]) == header.producer_id == 7
    assert int.from_bytes(data[batch.PRODUCER_EPOCH_POSITION :][:2]) == header.producer_epoch == 2
    assert int.from_bytes(data[53:][:4]) == header.base_sequence == 40
    assert int.from_bytes(data[batch.RECORD_COUNT_POSITION :][:4]) == header.record_count == 3
    assert int.from_bytes(data[batch.MAX_TIMESTAMP_POSITION :][:8]) == header.max_timestamp == 1002
    assert int.from_bytes(data[batch.BASE_TIMESTAMP_POSITION :][:8]) == header.base_timestamp == 1000
    assert int.from_bytes(data[batch.LAST_OFFSET_DELTA_POSITION :][:4]) == header.last_offset_delta == 2
    assert data[batch.MAGIC_POSITION] == header.magic == 2


def test_log_append_time_is_what_every_record_then_has() -> None:
    data = one_batch()
    batch.set_log_append_time(data, 0, 77_000)
    assert crc_is_valid(data)
    assert read_header(data).attributes & batch.TIMESTAMP_TYPE_MASK
    assert {record.timestamp for record in iter_records(data)} == {77_000}


@pytest.mark.parametrize("position", [batch.ATTRIBUTES_POSITION, batch.MAX_TIMESTAMP_POSITION, -1])
def test_a_flipped_bit_behind_the_crc_is_noticed(position: int) -> None:
    data = one_batch()
    data[position] ^= 1
    assert not crc_is_valid(data)


def test_a_batch_that_is_cut_off_is_not_valid() -> None:
    data = one_batch()
    assert not crc_is_valid(data[:-1])
    assert not crc_is_valid(data[:40])
    assert not crc_is_valid(b"")


def test_headers_of_several_batches_stop_before_a_partial_one() -> None:
    first, second = one_batch(1), one_batch(2)
    data = first + second + one_batch()[:70]
    assert [(position, header.record_count) for position, header in iter_headers(data)] == [
        (0, 1),
        (len(first), 2),
    ]


@pytest.mark.parametrize(
    ("base", "delta", "last"), [(0, 4, 4), (2**31 - 3, 2, 2**31 - 1), (2**31 - 3, 3, 0), (2**31 - 1, 5, 4)]
)
def test_sequences_wrap_after_the_largest_int(base: int, delta: int, last: int) -> None:
    header = BatchHeader(0, 0, 0, 2, 0, 0, delta, 0, 0, 1, 0, base, delta + 1)
    assert header.last_sequence == last


def test_a_batch_without_a_sequence_has_no_last_sequence() -> None:
    assert read_header(build_batch([Record(0, 0, None, b"v")])).last_sequence == -1


def test_stamping_a_producer_changes_its_fields_and_the_checksum_only() -> None:
    data = bytearray(build_batch([Record(0, 5, b"k", b"v")] * 2, base_offset=7, compression=Codec.LZ4))
    before = read_header(data)
    two = bytearray(data + data)
    stamp_producer(two, 40, 3, 17, transactional=True, pos=len(data))
    assert two[: len(data)] == data
    after = read_header(two, len(data))
    assert after.is_transactional
    assert crc_is_valid(two, len(data))
    expected = before._replace(
        producer_id=40, producer_epoch=3, base_sequence=17, attributes=before.attributes | 0x10, crc=after.crc
    )
    assert after == expected
    stamp_producer(two, -1, -1, -1, transactional=False, pos=len(data))
    assert two == data + data
