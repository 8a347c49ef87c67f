"""When a sync is demanded and up to where the log is on disk, from the numbers alone."""

from mainstem.config import LogConfig
from mainstem.storage.flush_schedule import FlushSchedule


def test_messages_count_from_the_recovery_point() -> None:
    schedule = FlushSchedule(100, LogConfig(flush_messages=10), 0)
    assert not schedule.is_demanded(109, 0)
    assert schedule.is_demanded(110, 0)
    schedule.synced(110)
    assert not schedule.is_demanded(119, 0)
    assert schedule.is_demanded(120, 0)


def test_time_counts_from_the_last_sync() -> None:
    schedule = FlushSchedule(0, LogConfig(flush_ms=1000), 5000)
    assert not schedule.is_demanded(1, 5999)
    assert schedule.is_demanded(1, 6000)
    schedule.synced(1)
    schedule.began_again(6500)
    assert not schedule.is_demanded(2, 7499)
    assert schedule.is_demanded(2, 7500)


def test_a_sync_that_ends_after_a_later_one_takes_nothing_back() -> None:
    schedule = FlushSchedule(0, LogConfig(), 0)
    schedule.synced(20)
    schedule.synced(10)
    assert schedule.recovery_point == 20


def test_what_is_cut_off_is_not_on_disk_any_more() -> None:
    schedule = FlushSchedule(50, LogConfig(flush_messages=10), 0)
    schedule.cut(70)
    assert schedule.recovery_point == 50
    schedule.cut(30)
    assert schedule.recovery_point == 30
    assert schedule.is_demanded(40, 0)


def test_new_settings_hold_at_once() -> None:
    schedule = FlushSchedule(0, LogConfig(), 0)
    assert not schedule.is_demanded(1, 0)
    schedule.update_config(LogConfig(flush_messages=1))
    assert schedule.is_demanded(1, 0)
