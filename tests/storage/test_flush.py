"""fsync: when it is demanded, and what the recovery point says afterwards."""

import errno
import threading
from pathlib import Path

import pytest

from mainstem.protocol.errors import ErrorCode, KafkaError
from tests.storage.log_helpers import NOW_MS, append, batch, open_log, read_batches
from tests.support.failing_files import FailingFiles


def test_nothing_demands_an_fsync_by_default(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert not any(log.append_as_leader(batch(5), 0, NOW_MS + i * 10**9).flush_needed for i in range(3))


def test_flush_messages_counts_from_the_recovery_point(tmp_path: Path) -> None:
    log = open_log(tmp_path, flush_messages=10)
    assert not log.append_as_leader(batch(9), 0, NOW_MS).flush_needed
    assert log.append_as_leader(batch(1), 0, NOW_MS).flush_needed
    assert log.append_as_leader(batch(1), 0, NOW_MS).flush_needed
    assert log.flush() == 11
    assert not log.append_as_leader(batch(9), 0, NOW_MS).flush_needed
    assert log.append_as_leader(batch(1), 0, NOW_MS).flush_needed


def test_every_message_may_demand_one(tmp_path: Path) -> None:
    log = open_log(tmp_path, flush_messages=1)
    for _ in range(3):
        assert log.append_as_leader(batch(1), 0, NOW_MS).flush_needed
        log.flush()


def test_flush_ms_counts_from_the_last_fsync(tmp_path: Path) -> None:
    log = open_log(tmp_path, flush_ms=1000)
    assert not log.append_as_leader(batch(1), 0, NOW_MS + 999).flush_needed
    assert log.append_as_leader(batch(1), 0, NOW_MS + 1000).flush_needed
    log.flush()
    assert not log.append_as_leader(batch(1), 0, NOW_MS + 1999).flush_needed
    assert log.append_as_leader(batch(1), 0, NOW_MS + 2000).flush_needed


def test_a_flush_covers_what_was_there_when_it_began(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=500)
    for _ in range(20):
        append(log)
    work = log.flush_begin()
    append(log, 5)
    work.run()
    assert log.flush_end(work) == log.recovery_point == 20
    assert log.flush() == 25


def test_flushing_in_a_thread_while_appending_and_rolling(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=2000)
    stop = threading.Event()
    points: list[int] = []

    def flush() -> None:
        while not stop.is_set():
            points.append(log.flush())

    thread = threading.Thread(target=flush)
    thread.start()
    try:
        for _ in range(500):
            append(log, 2)
    finally:
        stop.set()
        thread.join()
    assert points == sorted(points)
    assert log.flush() == 1000
    assert len(read_batches(log)) == 500


def test_a_failed_fsync_takes_the_directory_offline(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = FailingFiles()
    log = open_log(tmp_path, files=files)
    append(log, 3)
    error = OSError(errno.EIO, "Input/output error")
    with files.failing("fsync", error=error), pytest.raises(KafkaError) as refused:
        log.flush()
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.offline
    assert "offline until a restart" in caplog.text
    for action in (
        lambda: append(log),
        lambda: log.read(0, 100),
        lambda: log.offset_for_timestamp(0),
        log.flush,
    ):
        with pytest.raises(KafkaError) as refused:
            action()
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.recovery_point == 0
    log.close()
