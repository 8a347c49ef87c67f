"""All logs of a node: over several directories, through restarts, crashes and deletions."""

import errno
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mainstem.config import LogConfig
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.storage.directories.log_manager import LogManager
from mainstem.storage.errors import LogDirInUseError, LogDirInvalidError
from mainstem.storage.files.deletion import remove_path
from mainstem.storage.files.real_files import RealFiles
from tests.storage.log_helpers import NOW_MS, TOPIC_ID, append, read_batches
from tests.support.failing_files import FailingFiles

HOUR_MS = 3_600_000


def manager(*dirs: Path, **options: Any) -> LogManager:
    return LogManager(dirs, node_id=1, cluster_id="cluster", now_ms=NOW_MS, random=Random(1), **options)


def loaded(*dirs: Path, now_ms: int = NOW_MS, **settings: Any) -> LogManager:
    logs = manager(*dirs)
    logs.load(lambda topic: LogConfig(**settings), now_ms)
    return logs


def test_logs_come_back_after_a_clean_stop(tmp_path: Path) -> None:
    logs = loaded(tmp_path)
    log = logs.create("orders", 0, TOPIC_ID, LogConfig(), NOW_MS)
    assert logs.create("orders", 0, TOPIC_ID, LogConfig(), NOW_MS) is log
    append(log, 5)
    log.advance_log_start_offset(2, 5)
    logs.create("orders", 1, TOPIC_ID, LogConfig(), NOW_MS)
    logs.checkpoint_high_watermarks({("orders", 0): 4})
    logs.close(broker_epoch=9)
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n2\norders 0 5\norders 1 0\n"
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\norders 0 2\n"

    logs = loaded(tmp_path, retention_ms=7)
    assert all(log_dir.clean for log_dir in logs.dirs)
    assert logs.dirs[0].broker_epoch == 9
    assert len(logs) == 2
    again = logs.get("orders", 0)
    assert again is not None
    assert (again.log_start_offset, again.log_end_offset, again.topic_id) == (2, 5, TOPIC_ID)
    assert again.config.retention_ms == 7
    assert logs.high_watermarks() == {("orders", 0): 4}
    logs.close(clean=False)


def test_the_marker_is_gone_while_the_node_runs(tmp_path: Path) -> None:
    loaded(tmp_path).close()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    logs = loaded(tmp_path)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    logs.close(clean=False)
    assert not any(log_dir.clean for log_dir in loaded(tmp_path).dirs)


def test_a_crash_loses_nothing_that_was_written(tmp_path: Path) -> None:
    logs = loaded(tmp_path)
    log = logs.create("orders", 0, TOPIC_ID, LogConfig(segment_bytes=500), NOW_MS)
    for _ in range(20):
        append(log)
    log.flush()
    logs.checkpoint()
    for _ in range(20):
        append(log)
    logs.close(clean=False)
    log = next(iter(loaded(tmp_path)))
    assert log.log_end_offset == 40
    assert log.recovery_point == 20
    assert len(read_batches(log)) == 40


def test_a_folder_that_the_checkpoints_do_not_know_is_scanned(tmp_path: Path) -> None:
    elsewhere = loaded(tmp_path / "elsewhere")
    append(elsewhere.create("orders", 3, TOPIC_ID, LogConfig(), NOW_MS), 8)
    elsewhere.close()
    loaded(tmp_path / "data").close()
    (tmp_path / "elsewhere" / "orders-3").rename(tmp_path / "data" / "orders-3")
    log = loaded(tmp_path / "data").get("orders", 3)
    assert log is not None
    assert log.log_end_offset == 8


def test_new_logs_go_where_the_fewest_are(tmp_path: Path) -> None:
    dirs = [tmp_path / name for name in "abc"]
    logs = loaded(*dirs)
    for partition in range(9):
        logs.create("t", partition, TOPIC_ID, LogConfig(), NOW_MS)
    assert [log_dir.partition_count for log_dir in logs.dirs] == [3, 3, 3]
    for partition in range(6):
        log = logs.get("t", partition)
        assert log is not None
        if logs.dir_of(log) is logs.dirs[1]:
            logs.delete("t", partition, NOW_MS)
    made = logs.create("u", 0, TOPIC_ID, LogConfig(), NOW_MS)
    assert logs.dir_of(made) is logs.dirs[1]
    logs.close()
    assert len(loaded(*dirs)) == 8


def test_the_same_partition_in_two_directories_is_refused(tmp_path: Path) -> None:
    for name in "ab":
        logs = loaded(tmp_path / name)
        logs.create("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
        logs.close()
    with pytest.raises(LogDirInvalidError, match="t-0"):
        loaded(tmp_path / "a", tmp_path / "b")


def test_what_is_of_an_earlier_topic_in_a_returning_directory_is_set_aside(tmp_path: Path) -> None:
    """It was away when the topic was deleted and made again."""
    away, here = tmp_path / "away", tmp_path / "here"
    for directory, topic_id in ((away, b"earlier-topic-id"), (here, TOPIC_ID)):
        logs = loaded(directory)
        append(logs.create("t", 0, topic_id, LogConfig(), NOW_MS), 2)
        logs.close()
    logs = manager(away, here)
    logs.load(lambda topic: LogConfig(), NOW_MS, {"t": TOPIC_ID}.get)
    log = logs.get("t", 0)
    assert log is not None
    assert (logs.dir_of(log).path, log.topic_id, log.log_end_offset) == (here, TOPIC_ID, 2)
    logs.close()
    [stray] = away.glob("t-0.*-stray")
    assert (stray / f"{0:020}.log").stat().st_size > 0
    assert len(loaded(away, here)) == 1


def test_a_new_directory_joins_the_cluster_of_the_others(tmp_path: Path) -> None:
    loaded(tmp_path / "a").close()
    logs = LogManager([tmp_path / "b", tmp_path / "a"], node_id=1, now_ms=NOW_MS)
    assert logs.meta.cluster_id == "cluster"
    assert len({log_dir.meta.directory_id for log_dir in logs.dirs if log_dir.meta}) == 2
    logs.close()


def test_a_second_manager_is_kept_out_and_leaves_nothing_locked(tmp_path: Path) -> None:
    first = loaded(tmp_path / "a")
    with pytest.raises(LogDirInUseError):
        manager(tmp_path / "b", tmp_path / "a")
    manager(tmp_path / "b").close()
    first.close()


# ---- deleting


def test_a_deleted_log_is_renamed_at_once_and_removed_later(tmp_path: Path) -> None:
    logs = loaded(tmp_path)
    log = logs.create("orders", 0, TOPIC_ID, LogConfig(), NOW_MS)
    append(log, 5)
    result = log.read(0, 100)
    logs.delete("orders", 0, NOW_MS)
    logs.delete("orders", 0, NOW_MS)
    (folder,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert folder.name.startswith("orders-0.")
    assert folder.name.endswith("-delete")
    assert logs.get("orders", 0) is None
    assert logs.create("orders", 0, bytes(16), LogConfig(), NOW_MS).log_end_offset == 0
    assert result.records is not None
    assert len(result.records.read()) == result.size

    deletions = logs.environment.deletions
    assert deletions.take_due(NOW_MS + 59_999, 10) == []
    for path in deletions.take_due(NOW_MS + 60_000, 10):
        remove_path(RealFiles(), path)
    assert not folder.exists()
    logs.close()


def test_a_deletion_goes_on_after_a_restart(tmp_path: Path) -> None:
    logs = loaded(tmp_path)
    logs.create("orders", 0, TOPIC_ID, LogConfig(), NOW_MS)
    logs.delete("orders", 0, NOW_MS)
    logs.close()
    logs = loaded(tmp_path)
    assert len(logs) == 0
    for path in logs.environment.deletions.take_due(NOW_MS, 10):
        remove_path(RealFiles(), path)
    assert not any(path.is_dir() for path in tmp_path.iterdir())
    logs.close()


def test_the_folder_of_an_earlier_topic_makes_way(tmp_path: Path) -> None:
    logs = loaded(tmp_path)
    append(logs.create("orders", 0, TOPIC_ID, LogConfig(), NOW_MS), 5)
    fresh = logs.create("orders", 0, bytes(reversed(TOPIC_ID)), LogConfig(), NOW_MS)
    assert fresh.log_end_offset == 0
    assert fresh.topic_id == bytes(reversed(TOPIC_ID))
    logs.close()


def test_a_folder_that_could_not_be_renamed_is_not_taken_for_that_of_a_later_topic(
    tmp_path: Path,
) -> None:
    files = FailingFiles()
    logs = LogManager([tmp_path], node_id=1, now_ms=NOW_MS, cluster_id="cluster", files=files)
    append(logs.create("orders", 0, TOPIC_ID, LogConfig(), NOW_MS), 5)
    fresh_id = bytes(reversed(TOPIC_ID))
    with files.failing("rename", error=OSError(errno.ENOSPC, "No space left on device")):
        for refused in (
            lambda: logs.delete("orders", 0, NOW_MS),
            lambda: logs.create("orders", 0, fresh_id, LogConfig(), NOW_MS),
        ):
            with pytest.raises(KafkaError):
                refused()
    assert logs.create("orders", 0, fresh_id, LogConfig(), NOW_MS).log_end_offset == 0
    assert len(logs.environment.deletions) == 1
    logs.close()


def test_a_folder_of_no_topic_is_set_aside_and_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs = loaded(tmp_path)
    append(logs.create("orders", 0, TOPIC_ID, LogConfig(), NOW_MS), 5)
    logs.set_aside("orders", 0)
    assert len(logs.environment.deletions) == 0
    logs.close()
    (folder,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert folder.name.endswith("-stray")
    assert str(folder) in caplog.text
    assert len(loaded(tmp_path)) == 0


def test_a_lost_topic_id_is_written_again(tmp_path: Path) -> None:
    logs = loaded(tmp_path)
    append(logs.create("orders", 0, TOPIC_ID, LogConfig(), NOW_MS), 5)
    logs.close()
    (tmp_path / "orders-0" / "partition.metadata").unlink()
    logs = loaded(tmp_path)
    assert logs.create("orders", 0, TOPIC_ID, LogConfig(), NOW_MS).log_end_offset == 5
    assert (tmp_path / "orders-0" / "partition.metadata").exists()
    logs.close()


def test_file_handles_are_bounded(tmp_path: Path) -> None:
    logs = manager(tmp_path, open_files_max=4)
    made = [logs.create("t", partition, TOPIC_ID, LogConfig(), NOW_MS) for partition in range(20)]
    for round_number in range(3):
        for log in made:
            assert append(log) == round_number
        assert sum(log.segments.active.handle is not None for log in made) <= 4
    assert all(len(read_batches(log)) == 3 for log in made)
    logs.close()


# ---- failing disks


def test_a_directory_that_failed_takes_no_new_logs(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a", tmp_path / "b")
    logs.dirs[0].health.fail("for the test")
    for partition in range(4):
        assert logs.dir_of(logs.create("t", partition, TOPIC_ID, LogConfig(), NOW_MS)) is logs.dirs[1]
    logs.dirs[1].health.fail("for the test")
    with pytest.raises(KafkaError) as refused:
        logs.create("t", 9, TOPIC_ID, LogConfig(), NOW_MS)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    logs.close()
    assert not (tmp_path / "a" / ".kafka_cleanshutdown").exists()


def test_a_log_begins_again_where_it_may_and_its_directory_is_gone_for_good(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a", tmp_path / "b")
    known: dict[str, Any] = {"is_new": False, "directory_id": b"\x55" * 16}
    with pytest.raises(KafkaError, match="which is not there"):
        logs.create("t", 0, TOPIC_ID, LogConfig(), NOW_MS, **known)
    log = logs.create("t", 0, TOPIC_ID, LogConfig(), NOW_MS, **known, may_begin_again=True)
    assert log.log_end_offset == 0
    logs.dirs[0].health.fail("for the test")  # it could be the one
    with pytest.raises(KafkaError, match="which is not there"):
        logs.create("t", 1, TOPIC_ID, LogConfig(), NOW_MS, **known, may_begin_again=True)
    logs.close()


def test_a_directory_that_cannot_be_loaded_leaves_the_others_alone(tmp_path: Path) -> None:
    logs = loaded(tmp_path / "a", tmp_path / "b")
    for partition in range(2):
        append(logs.create("t", partition, TOPIC_ID, LogConfig(), NOW_MS), 3)
    logs.close()
    path = tmp_path / "a" / "t-0" / "00000000000000000000.log"
    path.unlink()
    path.mkdir()
    (tmp_path / "a" / ".kafka_cleanshutdown").unlink()
    logs = loaded(tmp_path / "a", tmp_path / "b")
    assert logs.dirs[0].health.failure is not None
    assert logs.dirs[1].health.failure is None
    assert [log.name for log in logs] == ["t-1"]
    logs.close()
