"""Reading by offset and by timestamp: whole batches, at any limit, from any place."""

import random
from pathlib import Path

import pytest

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.records.batch import read_header
from mainstem.records.compression import Codec
from mainstem.records.record import Record, build_batch
from tests.storage.log_helpers import NOW_MS, append, batch, open_log, read_batches


def test_an_offset_inside_a_batch_gives_the_whole_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(20):
        append(log, 7)
    for offset in range(140):
        result = log.read(offset, 1)
        assert result.records is not None
        header = read_header(result.records.read())
        assert header.base_offset == offset - offset % 7
        assert header.size == result.size


def test_a_read_ends_with_a_whole_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=300)
    chance = random.Random(2)
    for _ in range(300):
        append(log, chance.randrange(1, 4), value=bytes(chance.randrange(200)))
    for max_bytes in (1, 100, 101, 500, 1000, 5000, 10**6):
        found = read_batches(log, max_bytes=max_bytes)
        assert [header.base_offset for header in found[1:]] == [header.next_offset for header in found[:-1]]
        assert found[-1].next_offset == log.log_end_offset
        result = log.read(3, max_bytes, min_one_message=False)
        assert result.size <= max_bytes
        if max_bytes >= 500:
            assert result.size >= 0.4 * min(max_bytes, log.size)


def test_without_min_one_message_a_large_first_batch_is_withheld(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, 1, value=bytes(5000))
    assert log.read(0, 100, min_one_message=False).records is None
    assert log.read(0, 100).size == log.size
    assert log.read(0, 0).size == log.size


def test_nothing_beyond_max_offset_is_given(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=500)
    for _ in range(30):
        append(log, 2)
    for max_offset in range(0, 60, 2):
        offset = 0
        while offset < max_offset:
            result = log.read(offset, 10_000, max_offset)
            assert result.records is not None
            data = result.records.read()
            offset = read_header(data).base_offset + 2 * (len(data) // read_header(data).size)
            assert offset <= max_offset
        assert log.read(max_offset, 10_000, max_offset).records is None


@pytest.mark.parametrize("offset", [-1, 9, 21, 10**9])
def test_an_offset_outside_of_the_log_is_refused(tmp_path: Path, offset: int) -> None:
    log = open_log(tmp_path)
    for _ in range(20):
        append(log)
    log.advance_log_start_offset(10, 20)
    with pytest.raises(KafkaError) as refused:
        log.read(offset, 100)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.read(20, 100).records is None
    assert log.read(10, 100).size > 0


def test_readers_find_their_place_while_the_log_grows_and_rolls(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=2000, index_interval_bytes=200)
    chance = random.Random(3)
    readers = [0, 0, 0, 0, 0]
    for _ in range(400):
        append(log, chance.randrange(1, 5), value=bytes(chance.randrange(100)))
        for number, offset in enumerate(readers):
            if chance.random() < 0.3 and offset < log.log_end_offset:
                result = log.read(offset, chance.choice([1, 300, 1500, 10_000]))
                assert result.records is not None
                header = read_header(result.records.read())
                assert header.base_offset == offset
                readers[number] = header.next_offset
    assert len(log.segments) > 10


def test_damage_in_the_middle_is_an_error_and_not_a_wrong_answer(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(5):
        append(log, 2)
    size = log.size // 5
    path = Path(log.directory) / "00000000000000000000.log"
    with path.open("r+b") as file:
        file.seek(size + 8)
        file.write(bytes(4))
    with pytest.raises(KafkaError) as refused:
        log.read(6, 1000)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert not log.offline


# ---- by timestamp


def test_the_first_record_at_or_after_a_time_is_found(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=3000, index_interval_bytes=100)
    for i in range(100):
        append(log, 3, timestamp=NOW_MS + i * 10, codec=Codec(i % 5), epoch=i // 50)
    assert log.offset_for_timestamp(0) == (NOW_MS, 0, 0)
    assert log.offset_for_timestamp(NOW_MS + 501) == (NOW_MS + 501, 151, 1)
    assert log.offset_for_timestamp(NOW_MS + 503) == (NOW_MS + 510, 153, 1)
    assert log.offset_for_timestamp(NOW_MS + 992) == (NOW_MS + 992, 299, 1)
    assert log.offset_for_timestamp(NOW_MS + 993) is None


def test_times_that_go_back_and_forth(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=4000, index_interval_bytes=100)
    chance = random.Random(5)
    times = []
    for _ in range(200):
        times.append(NOW_MS + chance.randrange(1000))
        append(log, timestamp=times[-1])
    log.advance_log_start_offset(37, 200)
    for target in range(NOW_MS, NOW_MS + 1000, 7):
        expected = next((i for i, time in enumerate(times) if time >= target and i >= 37), None)
        found = log.offset_for_timestamp(target)
        assert (None if found is None else found[1]) == expected
    biggest = max(times)
    assert log.max_timestamp_offset() == (biggest, times.index(biggest), 0)


def test_the_largest_timestamp_is_that_of_a_record_inside_its_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    records = [Record(0, NOW_MS + delta, None, b"v") for delta in (1, 9, 3)]
    log.append_as_leader(memoryview(build_batch(records)), 4, NOW_MS)
    assert log.max_timestamp_offset() == (NOW_MS + 9, 1, 4)


def test_an_empty_log_has_no_times(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp_offset() is None
    log.append_as_leader(batch(1, timestamp=-1), 0, NOW_MS)
    assert log.max_timestamp_offset() is None


def test_times_are_found_after_a_restart(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for i in range(10):
        append(log, timestamp=NOW_MS + i)
    log.close()
    log = open_log(tmp_path, clean=True, recovery_point=10)
    assert log.offset_for_timestamp(NOW_MS + 4) == (NOW_MS + 4, 4, 0)
    assert log.max_timestamp_offset() == (NOW_MS + 9, 9, 0)
