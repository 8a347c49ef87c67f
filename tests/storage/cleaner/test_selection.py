"""Which part of a log is dirty, up to where it may be cleaned, and which log comes first."""

from pathlib import Path
from typing import Any

import pytest

from mainstem.storage.cleaner.selection import Candidate, dirtiest_last, examine
from mainstem.storage.log import Log
from tests.storage.log_helpers import NOW_MS, append, open_log
from tests.storage.transaction_helpers import append_in_transaction, end

HOUR_MS = 3_600_000


def _log(tmp_path: Path, segments: int = 5, **settings: Any) -> Log:
    """So many closed segments of ten records, an hour apart by their timestamps, and an active one."""
    log = open_log(tmp_path, cleanup_policy=frozenset({"compact"}), **settings)
    for number in range(segments):
        for _ in range(10):
            append(log, timestamp=NOW_MS - (segments - number) * HOUR_MS)
        log.roll(NOW_MS)
    append(log)
    return log


def _look(log: Log, checkpoint: int | None = None, now_ms: int = NOW_MS) -> Candidate:
    return examine(log, checkpoint, log.log_end_offset, now_ms)


def test_a_log_that_was_never_cleaned_is_dirty_up_to_its_active_segment(tmp_path: Path) -> None:
    found = _look(_log(tmp_path))
    assert (found.first_dirty_offset, found.first_uncleanable_offset) == (0, 50)
    assert (found.clean_bytes, found.ratio, found.is_worth_cleaning) == (0, 1.0, True)


def test_what_the_checkpoint_says_is_clean(tmp_path: Path) -> None:
    log = _log(tmp_path)
    size = log.segments[0].size
    found = _look(log, 40)
    assert (found.clean_bytes, found.cleanable_bytes, found.ratio) == (4 * size, size, 0.2)
    assert not found.is_worth_cleaning
    # A segment that is clean in part counts on both sides.
    found = _look(log, 25)
    assert (found.clean_bytes, found.cleanable_bytes) == (3 * size, 3 * size)
    assert _look(log, 50).cleanable_bytes == 0


@pytest.mark.parametrize("checkpoint", [10, 1000])
def test_a_checkpoint_outside_the_log_is_not_believed(tmp_path: Path, checkpoint: int) -> None:
    log = _log(tmp_path)
    log.advance_log_start_offset(20, 51)
    assert _look(log, checkpoint).first_dirty_offset == 20


def test_nothing_behind_the_last_stable_offset_is_cleaned(tmp_path: Path) -> None:
    log = _log(tmp_path, 2)
    append_in_transaction(log, 7)
    for _ in range(3):
        log.roll(NOW_MS)
        append(log)
    # The transaction is open from offset 21 on, in the segment that begins at 20.
    assert _look(log).first_uncleanable_offset == 20
    end(log, 7, commit=True)
    assert _look(log).first_uncleanable_offset == log.segments.active.base_offset
    assert examine(log, None, 15, NOW_MS).first_uncleanable_offset == 10


def test_young_records_are_left_alone(tmp_path: Path) -> None:
    log = _log(tmp_path, min_compaction_lag_ms=3 * HOUR_MS)
    assert _look(log).first_uncleanable_offset == 30
    assert _look(log, now_ms=NOW_MS + 2 * HOUR_MS).first_uncleanable_offset == 50
    # A clock that was set back makes all of them young.
    assert _look(log, now_ms=NOW_MS - 100 * HOUR_MS).cleanable_bytes == 0


def test_old_records_are_cleaned_however_few_they_are(tmp_path: Path) -> None:
    log = _log(tmp_path, max_compaction_lag_ms=2 * HOUR_MS)
    assert not _look(log, 40).is_worth_cleaning
    late = _look(log, 40, now_ms=NOW_MS + 2 * HOUR_MS)
    assert late.is_due
    assert late.is_worth_cleaning
    assert not _look(log, 50, now_ms=NOW_MS + 100 * HOUR_MS).is_worth_cleaning


def test_the_dirtiest_comes_first_if_it_is_worth_it(tmp_path: Path) -> None:
    one, other = (_log(tmp_path / name) for name in "ab")
    assert dirtiest_last([_look(other, 20), _look(one, 30)]) == [_look(other, 20)]
    assert dirtiest_last([_look(one, 30)]) == []
    one.update_config(open_log(tmp_path / "c", min_cleanable_dirty_ratio=0.1).config)
    assert dirtiest_last([_look(one, 30)]) == [_look(one, 30)]
