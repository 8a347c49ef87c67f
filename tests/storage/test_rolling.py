"""When a new segment begins: by size, age, index and offset; and what is left of the old one."""

from pathlib import Path
from random import Random
from typing import Any

from mainstem.config import LogConfig
from mainstem.storage.environment import LogEnvironment
from mainstem.storage.log import Log
from mainstem.storage.segments.segment import RELATIVE_OFFSET_MAX
from tests.storage.log_helpers import NOW_MS, TOPIC_ID, append, batch, files, open_log, read_batches

HOUR_MS = 3_600_000


def test_a_segment_never_grows_beyond_segment_bytes(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=1000)
    for _ in range(50):
        append(log, value=bytes(60))
    assert len(log.segments) > 5
    assert all(segment.size <= 1000 for segment in log.segments)
    assert all(segment.size + 140 > 1000 for segment in log.segments.in_order[:-1])
    assert [path.stat().st_size for path in files(log, ".log")] == [segment.size for segment in log.segments]
    assert len(read_batches(log)) == 50


def test_age_counts_from_the_first_batch_by_timestamps(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_ms=HOUR_MS, message_timestamp_after_max_ms=10 * HOUR_MS)
    append(log, timestamp=NOW_MS)
    append(log, timestamp=NOW_MS + HOUR_MS)
    assert len(log.segments) == 1
    append(log, timestamp=NOW_MS + HOUR_MS + 1)
    assert log.segments.bases == [0, 2]


def test_what_must_be_compacted_soon_does_not_stay_in_the_active_segment(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"segment_ms": 100 * HOUR_MS, "max_compaction_lag_ms": HOUR_MS}
    for policy, bases in (("compact", [0, 2]), ("delete", [0])):
        log = open_log(tmp_path / policy, cleanup_policy=(policy,), **settings)
        for timestamp in (NOW_MS - 3 * HOUR_MS, NOW_MS - 2 * HOUR_MS, NOW_MS):
            append(log, key=b"k", timestamp=timestamp)
        assert log.segments.bases == bases


def test_without_timestamps_the_clock_counts(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_ms=HOUR_MS)
    append(log, timestamp=-1)
    append(log, timestamp=-1, now_ms=NOW_MS + HOUR_MS)
    assert len(log.segments) == 1
    append(log, timestamp=-1, now_ms=NOW_MS + HOUR_MS + 1)
    assert len(log.segments) == 2


def test_the_age_of_a_segment_is_known_after_a_restart(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_ms=HOUR_MS)
    append(log, timestamp=NOW_MS - HOUR_MS)
    log.close()
    log = open_log(tmp_path, clean=True, recovery_point=1, segment_ms=HOUR_MS)
    append(log, timestamp=NOW_MS + 1)
    assert log.segments.bases == [0, 1]


def test_jitter_makes_segments_of_different_logs_roll_apart(tmp_path: Path) -> None:
    config = LogConfig(segment_ms=HOUR_MS, segment_jitter_ms=HOUR_MS)
    environment = LogEnvironment(random=Random(1))
    jitters = {
        Log.open(
            tmp_path / f"t-{i}", "t", i, TOPIC_ID, config, now_ms=NOW_MS, environment=environment
        ).segments.active.jitter_ms
        for i in range(10)
    }
    assert len(jitters) > 5
    assert all(0 <= jitter < HOUR_MS for jitter in jitters)


def test_a_full_index_makes_the_log_roll(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_index_bytes=80, index_interval_bytes=0)
    for i in range(50):
        append(log, timestamp=NOW_MS + i)
    assert len(log.segments) > 5
    log.close()
    for path in files(log, ".index"):
        assert path.stat().st_size <= 80
    for path in files(log, ".timeindex"):
        assert path.stat().st_size <= 80


def test_offsets_too_far_from_the_base_make_the_log_roll(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log)
    far = batch(1)
    far[0:8] = (RELATIVE_OFFSET_MAX + 1).to_bytes(8)
    log.append_as_follower(far, NOW_MS)
    assert log.segments.bases == [0, 1]
    assert [header.base_offset for header in read_batches(log)] == [0, RELATIVE_OFFSET_MAX + 1]


def test_an_empty_segment_is_not_rolled(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.roll(NOW_MS) is log.segments.active
    append(log, 3)
    log.roll(NOW_MS)
    log.roll(NOW_MS)
    assert log.segments.bases == [0, 3]


def test_a_rolled_segment_has_its_indexes_and_a_producer_snapshot(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=100)
    for i in range(20):
        append(log, timestamp=NOW_MS + i)
    log.roll(NOW_MS)
    index, time_index = files(log, ".index")[0], files(log, ".timeindex")[0]
    size = log.segments[0].size // 20
    entries = index.read_bytes()
    assert entries[:8] == (2).to_bytes(4) + (2 * size).to_bytes(4)
    assert time_index.read_bytes()[-12:] == (NOW_MS + 19).to_bytes(8) + (19).to_bytes(4)
    assert [path.name for path in files(log, ".snapshot")] == ["00000000000000000020.snapshot"]


def test_preallocated_space_is_given_back(tmp_path: Path) -> None:
    log = open_log(tmp_path, preallocate=True, segment_bytes=100_000)
    append(log)
    path = files(log, ".log")[0]
    assert path.stat().st_size == 100_000
    used = log.size
    log.roll(NOW_MS)
    assert path.stat().st_size == used
    append(log)
    log.close()
    assert files(log, ".log")[1].stat().st_size == used
