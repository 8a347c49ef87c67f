"""Every reason for which a client's batch is refused, with the code and a message that helps."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import (
    ATTRIBUTES_POSITION,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_POSITION,
    LENGTH_POSITION,
    MAGIC_POSITION,
    RECORD_COUNT_POSITION,
    read_header,
    set_crc,
)
from mainstem.records.compression import Codec
from mainstem.records.record import Record, assemble, build_batch
from mainstem.storage.errors import InvalidRecordError
from tests.storage.log_helpers import NOW_MS, batch, open_log

BASE_SEQUENCE_POSITION = 53
DAY_MS = 86_400_000


def refusal(tmp_path: Path, data: memoryview, **settings: Any) -> KafkaError:
    log = open_log(tmp_path, **settings)
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(data, 0, NOW_MS)
    assert log.log_end_offset == 0
    assert log.size == 0
    assert "t-0" in refused.value.message
    return refused.value


def patched(position: int, value: int, size: int, *, fix_crc: bool = True, **fields: Any) -> memoryview:
    data = batch(3, **fields)
    data[position : position + size] = value.to_bytes(size, signed=value < 0)
    if fix_crc:
        set_crc(data)
    return data


def with_attributes(attributes: int) -> memoryview:
    return patched(ATTRIBUTES_POSITION, attributes, 2)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: batch(3)[: HEADER_SIZE - 1], ErrorCode.INVALID_RECORD),
        (lambda: memoryview(bytearray()), ErrorCode.INVALID_RECORD),
        (lambda: batch(3)[:-1], ErrorCode.INVALID_RECORD),
        (lambda: patched(HEADER_SIZE + 9, 0x7E, 1, fix_crc=False), ErrorCode.CORRUPT_MESSAGE),
        (lambda: patched(LENGTH_POSITION, 20, 4, fix_crc=False), ErrorCode.CORRUPT_MESSAGE),
        (lambda: patched(LENGTH_POSITION, -5, 4, fix_crc=False), ErrorCode.CORRUPT_MESSAGE),
        (lambda: patched(MAGIC_POSITION, 0, 1), ErrorCode.INVALID_RECORD),
        (lambda: patched(MAGIC_POSITION, 1, 1), ErrorCode.INVALID_RECORD),
        (lambda: patched(MAGIC_POSITION, 3, 1), ErrorCode.CORRUPT_MESSAGE),
        (lambda: memoryview(bytearray(batch(1)) + bytearray(batch(1))), ErrorCode.INVALID_RECORD),
        (lambda: patched(RECORD_COUNT_POSITION, 4, 4), ErrorCode.INVALID_RECORD),
        (lambda: patched(RECORD_COUNT_POSITION, 0, 4), ErrorCode.INVALID_RECORD),
        (lambda: patched(LAST_OFFSET_DELTA_POSITION, 7, 4), ErrorCode.INVALID_RECORD),
        (lambda: patched(0, 5, 8), ErrorCode.INVALID_RECORD),
        (lambda: with_attributes(CONTROL_MASK), ErrorCode.INVALID_RECORD),
        (lambda: with_attributes(DELETE_HORIZON_MASK), ErrorCode.INVALID_RECORD),
        (lambda: with_attributes(0x80), ErrorCode.INVALID_RECORD),
        (lambda: with_attributes(-0x8000), ErrorCode.INVALID_RECORD),
        (lambda: with_attributes(5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (
            lambda: patched(BASE_SEQUENCE_POSITION, -1, 4, producer_id=4, producer_epoch=0, base_sequence=0),
            ErrorCode.INVALID_RECORD,
        ),
    ],
)
def test_a_malformed_batch_is_refused(
    tmp_path: Path, make: Callable[[], memoryview], code: ErrorCode
) -> None:
    assert refusal(tmp_path, make()).code is code


def test_a_batch_may_have_exactly_max_message_bytes(tmp_path: Path) -> None:
    data = batch(3)
    assert refusal(tmp_path, data, max_message_bytes=len(data) - 1).code is ErrorCode.MESSAGE_TOO_LARGE
    log = open_log(tmp_path, max_message_bytes=len(data))
    log.append_as_leader(data, 0, NOW_MS)


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    data = batch(1, value=bytes(2000))
    assert refusal(tmp_path, data, segment_bytes=1000).code is ErrorCode.RECORD_LIST_TOO_LARGE


@pytest.mark.parametrize(
    ("timestamp", "accepted"), [(-DAY_MS, True), (0, True), (3_600_000, True), (3_600_001, False)]
)
def test_timestamps_may_be_an_hour_ahead_by_default(tmp_path: Path, timestamp: int, accepted: bool) -> None:
    data = batch(1, timestamp=NOW_MS + timestamp)
    if accepted:
        assert open_log(tmp_path).append_as_leader(data, 0, NOW_MS).first_offset == 0
        return
    error = refusal(tmp_path, data)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert isinstance(error, InvalidRecordError)
    assert error.record_errors[0][0] == 0


def test_timestamps_may_be_bounded_below(tmp_path: Path) -> None:
    old = batch(1, timestamp=NOW_MS - 5001)
    assert refusal(tmp_path, old, message_timestamp_before_max_ms=5000).code is ErrorCode.INVALID_TIMESTAMP


def test_the_largest_timestamp_counts_too(tmp_path: Path) -> None:
    data = memoryview(build_batch([Record(0, NOW_MS, None, b"v"), Record(0, NOW_MS + DAY_MS, None, b"v")]))
    error = refusal(tmp_path, data)
    assert isinstance(error, InvalidRecordError)
    assert error.record_errors[0][0] == 1


def test_records_without_a_timestamp_are_accepted(tmp_path: Path) -> None:
    data = batch(1, timestamp=-1)
    log = open_log(tmp_path, message_timestamp_before_max_ms=5000)
    assert log.append_as_leader(data, 0, NOW_MS).max_timestamp == -1


def test_under_log_append_time_any_timestamp_will_do(tmp_path: Path) -> None:
    log = open_log(tmp_path, message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=5)
    log.append_as_leader(batch(1, timestamp=5), 0, NOW_MS)
    log.append_as_leader(batch(1, timestamp=NOW_MS * 2), 0, NOW_MS)


def test_records_without_a_key_are_named_on_a_compacted_topic(tmp_path: Path) -> None:
    records = [Record(0, NOW_MS, key, b"v") for key in (b"a", None, b"b", None)]
    data = memoryview(build_batch(records, compression=Codec.ZSTD))
    error = refusal(tmp_path, data, cleanup_policy=frozenset({"compact", "delete"}))
    assert error.code is ErrorCode.INVALID_RECORD
    assert isinstance(error, InvalidRecordError)
    assert [index for index, _ in error.record_errors] == [1, 3]


def test_garbage_with_a_good_checksum_passes_unless_records_must_be_read(tmp_path: Path) -> None:
    def garbage(codec: Codec) -> memoryview:
        header = read_header(batch(3))
        return memoryview(assemble(header._replace(attributes=int(codec)), b"\xffnonsense" * 9))

    compacted = {"cleanup_policy": frozenset({"compact"})}
    assert refusal(tmp_path, garbage(Codec.NONE), **compacted).code is ErrorCode.INVALID_RECORD
    assert refusal(tmp_path, garbage(Codec.LZ4), compression_type="gzip").code is ErrorCode.INVALID_RECORD
    assert open_log(tmp_path).append_as_leader(garbage(Codec.LZ4), 0, NOW_MS).last_offset == 2


def test_recompression_may_not_exceed_the_size_limit(tmp_path: Path) -> None:
    data = batch(1, value=bytes(50_000), codec=Codec.ZSTD)
    error = refusal(tmp_path, data, compression_type="uncompressed", max_message_bytes=10_000)
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
