"""Cleaning a log: of each key the latest record stays, under its offset, and batches keep what they are."""

import itertools
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mainstem.records.batch import DELETE_HORIZON_MASK, BatchHeader
from mainstem.records.compression import Codec
from mainstem.records.record import Record, build_batch
from mainstem.storage.cleaner.jobs import Limits
from mainstem.storage.log import Log
from tests.storage.cleaner.cleaning_helpers import LIMITS, clean, records_of
from tests.storage.log_helpers import NOW_MS, append, open_log, read_batches

COMPACT = frozenset({"compact"})
_DAY_MS = 86_400_000


def _open(tmp_path: Path, **settings: Any) -> Log:
    return open_log(tmp_path, **{"segment_bytes": 2000, "cleanup_policy": COMPACT, **settings})


def _append(log: Log, *pairs: tuple[bytes, bytes | None], timestamp: int = NOW_MS, **fields: Any) -> int:
    records = [Record(0, timestamp + number, key, value) for number, (key, value) in enumerate(pairs)]
    batch = memoryview(build_batch(records, **fields))
    return log.append_as_leader(batch, 0, NOW_MS).first_offset


def _fill(log: Log, batches: int, keys: int, seed: int = 1, **fields: Any) -> None:
    random, counter = Random(seed), itertools.count()
    for _ in range(batches):
        pairs = [
            (b"key %d" % random.randrange(keys), b"value %d" % next(counter))
            for _ in range(random.randint(1, 6))
        ]
        _append(log, *pairs, **fields)


def _survivors(records: list[Record], end_offset: int) -> list[Record]:
    """What a dict of the latest per key says, for the part before `end_offset`."""
    latest = {record.key: record.offset for record in records if record.offset < end_offset}
    return [r for r in records if r.offset >= end_offset or latest[r.key] == r.offset]


@pytest.mark.parametrize("codec", list(Codec))
def test_the_latest_record_of_each_key_stays(tmp_path: Path, codec: Codec) -> None:
    log = _open(tmp_path)
    _fill(log, 200, 20, compression=codec)
    before, end, active = records_of(log), log.log_end_offset, log.segments.active
    finished = clean(log)
    assert finished.end_offset == active.base_offset
    assert records_of(log) == _survivors(before, active.base_offset)
    assert (log.log_start_offset, log.log_end_offset, log.segments.active) == (0, end, active)
    codecs = {header.attributes & 7 for header in read_batches(log) if header.record_count}
    assert codecs == {codec}
    log.close()


def test_several_small_segments_become_one(tmp_path: Path) -> None:
    log = _open(tmp_path)
    _fill(log, 200, 5)
    before = records_of(log)
    checkpoint = clean(log).end_offset
    several = len(log.segments)
    log.roll(NOW_MS)
    _append(log, (b"key", b"value"))
    clean(log, checkpoint)
    assert several > 5
    assert len(log.segments) == 2
    assert log.segments.bases[0] == 0
    assert records_of(log)[:-1] == _survivors(before, log.log_end_offset - 1)
    assert len(list(Path(log.directory).glob("*.log"))) == 2


def test_the_map_of_keys_is_bounded_and_cleaning_goes_on_in_passes(tmp_path: Path) -> None:
    log = _open(tmp_path, segment_bytes=5000)
    _fill(log, 300, 100)
    before, end = records_of(log), log.segments.active.base_offset
    limits = Limits(map_bytes=24 * 30, load_factor=0.9, buffer_bytes=1000, bytes_per_second=1e300)
    checkpoint, passes = 0, 0
    while checkpoint < end:
        finished = clean(log, checkpoint, limits=limits)
        assert finished.keys <= 27
        assert finished.end_offset > checkpoint
        checkpoint, passes = finished.end_offset, passes + 1
    assert passes > 5
    assert records_of(log) == _survivors(before, end)


def test_deleted_keys_stay_readable_for_a_while(tmp_path: Path) -> None:
    log = _open(tmp_path)
    _append(log, (b"gone", b"value"), (b"there", b"value"))
    _append(log, (b"gone", None), timestamp=NOW_MS + 5)
    log.roll(NOW_MS)
    _append(log, (b"other", b"value"))

    clean(log)
    (data, tombstone, _) = records_of(log)
    assert (data.key, tombstone.key, tombstone.value) == (b"there", b"gone", None)
    marked = read_batches(log)[1]
    assert marked.attributes & DELETE_HORIZON_MASK
    assert marked.base_timestamp == NOW_MS + _DAY_MS
    assert (tombstone.timestamp, marked.max_timestamp) == (NOW_MS + 5, NOW_MS + 5)

    clean(log, 0, now_ms=NOW_MS + _DAY_MS - 1)
    assert records_of(log)[1] == tombstone
    clean(log, 0, now_ms=NOW_MS + _DAY_MS)
    assert [record.key for record in records_of(log)] == [b"there", b"other"]


def _header_facts(header: BatchHeader) -> tuple[int, ...]:
    return (
        header.base_offset, header.last_offset, header.partition_leader_epoch, header.producer_id,
        header.producer_epoch, header.base_sequence,
    )  # fmt: skip


def test_a_batch_keeps_its_header_when_it_loses_records(tmp_path: Path) -> None:
    log = _open(tmp_path)
    _append(
        log, (b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"d", b"4"),
        producer_id=9, producer_epoch=3, base_sequence=0,
    )  # fmt: skip
    before = read_batches(log)[0]
    _append(log, (b"a", b"5"), (b"d", b"6"))
    log.roll(NOW_MS)
    clean(log)
    after = read_batches(log)[0]
    assert _header_facts(after) == _header_facts(before)
    assert (after.record_count, after.base_timestamp, after.max_timestamp) == (2, NOW_MS + 1, NOW_MS + 2)
    assert [(r.offset, r.timestamp) for r in records_of(log)][:2] == [(1, NOW_MS + 1), (2, NOW_MS + 2)]


def test_the_last_batch_of_a_producer_stays_without_its_records(tmp_path: Path) -> None:
    log = _open(tmp_path)
    for sequence in range(3):
        _append(log, (b"a", b"1"), producer_id=9, producer_epoch=3, base_sequence=sequence)
    before = read_batches(log)[2]
    _append(log, (b"a", b"2"), (b"b", b"2"))
    log.roll(NOW_MS)
    clean(log)
    after = read_batches(log)
    assert [header.base_offset for header in after] == [2, 3]
    assert _header_facts(after[0]) == _header_facts(before)
    assert (after[0].record_count, after[0].base_timestamp) == (0, -1)
    assert after[0].max_timestamp == before.max_timestamp

    log.close()
    log = _open(tmp_path, recovery_point=0)
    assert log.producers.state.entries[9].last_sequence == 2


def test_the_last_batch_of_the_cleaned_part_stays_so_that_its_offset_does(tmp_path: Path) -> None:
    log = _open(tmp_path)
    _append(log, (b"a", b"1"))
    _append(log, (b"a", None))
    log.roll(NOW_MS)
    _append(log, (b"b", b"1"))
    clean(log)
    clean(log, 0, now_ms=NOW_MS + _DAY_MS)
    headers = read_batches(log)
    assert [(header.base_offset, header.record_count) for header in headers] == [(1, 0), (2, 1)]


def test_records_that_the_broker_stamped_keep_their_time(tmp_path: Path) -> None:
    log = _open(tmp_path, message_timestamp_type="LogAppendTime")
    _append(log, (b"a", b"1"), (b"b", None), (b"c", b"1"), timestamp=5)
    _append(log, (b"a", b"2"))
    log.roll(NOW_MS)
    clean(log)
    assert [(r.key, r.timestamp) for r in records_of(log)] == [(k, NOW_MS) for k in (b"b", b"c", b"a")]
    assert read_batches(log)[0].max_timestamp == NOW_MS


def test_records_without_a_key_go(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=2000)
    log.append_as_leader(
        memoryview(build_batch([Record(0, NOW_MS, None, b"x"), Record(0, NOW_MS, b"k", b"y")])), 0, NOW_MS
    )
    log.roll(NOW_MS)
    clean(log)
    assert [record.key for record in records_of(log)] == [b"k"]


def test_a_cleaned_log_is_read_by_offset_and_by_time(tmp_path: Path) -> None:
    log = _open(tmp_path, index_interval_bytes=100)
    for number in range(400):
        _append(log, (b"key %d" % (number % 150), b"v" * 20), timestamp=NOW_MS + 10 * number)
    clean(log)
    left = records_of(log)
    for offset in range(log.log_end_offset):
        expected = next(record for record in left if record.offset >= offset)
        assert log.read(offset, 1).next_offset == expected.offset + 1
        assert log.offset_for_timestamp(NOW_MS + 10 * offset) == (expected.timestamp, expected.offset, 0)
    for segment in log.segments:
        assert segment.indexes_are_sane()
    reopened = _open(tmp_path)
    assert records_of(reopened) == left


def test_a_cleaned_log_is_replicated_and_cut_like_any_other(tmp_path: Path) -> None:
    log = _open(tmp_path / "leader")
    _fill(log, 100, 10, producer_id=-1)
    clean(log)
    copy = _open(tmp_path / "follower")
    while copy.log_end_offset < log.log_end_offset:
        read = log.read(copy.log_end_offset, 1000)
        assert read.records is not None
        copy.append_as_follower(memoryview(bytearray(read.records.read())), NOW_MS)
    assert records_of(copy) == records_of(log)
    left = records_of(log)
    middle = left[len(left) // 2].offset
    log.truncate_to(middle, NOW_MS)
    assert (log.log_end_offset, records_of(log)) == (middle, [r for r in left if r.offset < middle])
    assert append(log) == middle


def test_what_lies_before_the_start_of_the_log_goes_by_retention(tmp_path: Path) -> None:
    log = _open(tmp_path, cleanup_policy=frozenset({"compact", "delete"}), retention_ms=1000)
    _fill(log, 100, 10)
    clean(log)
    log.advance_log_start_offset(log.segments.bases[3] + 1, log.log_end_offset)
    assert log.delete_old_segments(NOW_MS, log.log_end_offset) == 3
    finished = clean(log)
    assert finished.end_offset == log.segments.active.base_offset
    left = len(log.segments.bases)
    assert log.delete_old_segments(NOW_MS + 5000, log.log_end_offset) == left
    assert records_of(log) == []


def test_a_map_that_is_too_small_for_one_key_is_made_larger(tmp_path: Path) -> None:
    log = _open(tmp_path)
    _fill(log, 20, 3)
    log.roll(NOW_MS)
    finished = clean(log, limits=Limits(1, 0.1, 1, LIMITS.bytes_per_second))
    assert finished.end_offset > 0
