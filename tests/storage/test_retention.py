"""Which segments retention removes, and that no offset is ever used twice."""

import os
from pathlib import Path
from typing import Any

import pytest

from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.storage.log import Log
from tests.storage.log_helpers import NOW_MS, append, files, open_log, read_batches

HOUR_MS = 3_600_000


def filled(tmp_path: Path, **settings: Any) -> Log:
    """Ten segments of ten records, an hour apart by their timestamps."""
    log = open_log(tmp_path, **settings)
    for hour in range(10):
        for _ in range(10):
            append(log, timestamp=NOW_MS - (10 - hour) * HOUR_MS, epoch=hour)
        log.roll(NOW_MS)
    return log


def test_age_is_that_of_the_newest_record(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=4 * HOUR_MS)
    assert log.delete_old_segments(NOW_MS, 100) == 6
    assert log.log_start_offset == 60
    assert log.delete_old_segments(NOW_MS, 100) == 0
    assert log.leader_epochs.entries[0] == (6, 60)
    assert log.delete_old_segments(NOW_MS + HOUR_MS, 100) == 1


def test_size_counts_whole_segments(tmp_path: Path) -> None:
    log = filled(tmp_path)
    segment = log.segments[0].size
    log.update_config(open_log(tmp_path / "other", retention_bytes=segment * 3, retention_ms=-1).config)
    assert log.delete_old_segments(NOW_MS, 100) == 7
    assert log.size == 3 * segment
    log.update_config(open_log(tmp_path / "other", retention_bytes=segment * 3 - 1, retention_ms=-1).config)
    assert log.delete_old_segments(NOW_MS, 100) == 0


def test_nothing_above_the_high_watermark_is_removed(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=1)
    assert log.delete_old_segments(NOW_MS, 35) == 3
    assert log.log_start_offset == 30


def test_negative_retention_keeps_everything(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=-1, retention_bytes=-1)
    assert log.delete_old_segments(NOW_MS * 2, 100) == 0


def test_a_log_that_is_only_compacted_is_not_aged(tmp_path: Path) -> None:
    log = open_log(tmp_path, retention_ms=1, cleanup_policy=frozenset({"compact"}))
    append(log, 5, timestamp=NOW_MS - HOUR_MS)
    log.roll(NOW_MS)
    assert log.delete_old_segments(NOW_MS, 5) == 0
    log.advance_log_start_offset(5, 5)
    assert log.delete_old_segments(NOW_MS, 5) == 1


@pytest.mark.parametrize("clean", [True, False])
def test_an_emptied_log_goes_on_where_it_was_after_a_restart(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path, retention_ms=HOUR_MS)
    append(log, 25, timestamp=NOW_MS - 5 * HOUR_MS)
    assert log.delete_old_segments(NOW_MS, 25) == 1
    assert (log.log_start_offset, log.log_end_offset, log.size) == (25, 25, 0)
    log.close(clean=clean)
    log = open_log(tmp_path, clean=clean, recovery_point=25 if clean else 0)
    assert (log.log_start_offset, log.log_end_offset) == (25, 25)
    assert append(log) == 25


def test_a_record_stamped_years_ahead_keeps_its_segment_and_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path, retention_ms=HOUR_MS, message_timestamp_after_max_ms=10**15)
    append(log, timestamp=NOW_MS + 10**12)
    append(log, timestamp=NOW_MS)
    log.roll(NOW_MS)
    assert log.delete_old_segments(NOW_MS + 5 * HOUR_MS, 2) == 0
    assert "stamped" in caplog.text
    assert log.delete_old_segments(NOW_MS + 10**12 + 2 * HOUR_MS, 2) == 1


def test_a_clock_that_is_set_back_removes_nothing_early(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=4 * HOUR_MS)
    assert log.delete_old_segments(NOW_MS - 1000 * HOUR_MS, 100) == 0
    assert log.delete_old_segments(NOW_MS, 100) == 6


def test_segments_without_timestamps_go_by_the_age_of_the_file(tmp_path: Path) -> None:
    log = open_log(tmp_path, retention_ms=HOUR_MS)
    append(log, 1, timestamp=-1)
    log.roll(NOW_MS)
    os.utime(files(log, ".log")[0], (NOW_MS / 1000, NOW_MS / 1000))
    assert log.delete_old_segments(NOW_MS + HOUR_MS, 1) == 0
    assert log.delete_old_segments(NOW_MS + HOUR_MS + 1000, 1) == 1


def test_deleted_records_are_unreadable_at_once_and_removed_with_their_segment(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=-1)
    assert log.advance_log_start_offset(15, 100)
    assert not log.advance_log_start_offset(15, 100)
    assert not log.advance_log_start_offset(3, 100)
    assert log.log_start_offset == 15
    with pytest.raises(KafkaError):
        log.read(14, 100)
    assert log.delete_old_segments(NOW_MS, 100) == 1
    assert log.segments.bases[0] == 10
    assert read_batches(log)[0].base_offset == 15
    assert log.leader_epochs.entries[0] == (1, 15)


def test_records_above_the_high_watermark_cannot_be_deleted(tmp_path: Path) -> None:
    log = filled(tmp_path)
    with pytest.raises(KafkaError) as refused:
        log.advance_log_start_offset(51, 50)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.log_start_offset == 0


def test_a_range_of_a_removed_segment_can_still_be_sent(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=1)
    result = log.read(0, 10_000)
    assert result.records is not None
    log.delete_old_segments(NOW_MS, 100)
    for path in files(log, ".deleted"):
        path.unlink()
    assert len(result.records.read()) == result.size
