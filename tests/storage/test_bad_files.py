"""Files that nobody expects in a data directory, and checkpoints that were cut off: a defined answer to each,
and nothing that was written is lost.
"""

from pathlib import Path

import pytest

from mainstem.config import LogConfig
from mainstem.protocol.errors import ErrorCode, KafkaError
from mainstem.storage.directories.log_manager import LogManager
from mainstem.storage.files.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    write_offsets,
)
from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.leader_epoch_cache import FILE_NAME as LEADER_EPOCHS
from tests.storage.directories.test_log_manager import loaded
from tests.storage.log_helpers import NOW_MS, TOPIC_ID, append, read_batches

SMALL_SEGMENTS = LogConfig(segment_bytes=300)


def _filled(path: Path) -> None:
    """Two partitions of several segments, every checkpoint with something in it, and a clean stop."""
    logs = loaded(path)
    for partition in range(2):
        log = logs.create("t", partition, TOPIC_ID, SMALL_SEGMENTS, NOW_MS)
        for number in range(12):
            append(log, 1, epoch=number // 6)
        log.advance_log_start_offset(1, 12)
    logs.checkpoint_high_watermarks({("t", 0): 12, ("t", 1): 12})
    write_offsets(RealFiles(), path / CLEANER_OFFSETS, {("t", 0): 6})
    logs.close()


def _complete(logs: LogManager) -> bool:
    """Whether all records are there, and the logs can go on."""
    for log in logs:
        offsets = [header.base_offset for header in read_batches(log, 0 if log.log_start_offset == 0 else 1)]
        if offsets[-11:] != list(range(1, 12)) or append(log, 1, epoch=2) != 12:
            return False
    return len(logs) == 2


@pytest.mark.parametrize(
    "name",
    [
        *(RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS),
        *(f"t-0/{LEADER_EPOCHS}", f"t-0/{PARTITION_METADATA}"),
    ],
)
def test_a_checkpoint_that_was_cut_off_costs_a_scan_and_no_record(tmp_path: Path, name: str) -> None:
    """At every length; the numbers in it are then as if they had never been written."""
    _filled(tmp_path / "0")
    content = (tmp_path / "0" / name).read_bytes()
    assert content
    lengths = range(0, len(content), 3)
    for length in lengths:
        folder = tmp_path / f"cut at {length}"
        _filled(folder)
        (folder / name).write_bytes(content[:length])
        logs = loaded(folder, segment_bytes=300)
        logs.high_watermarks()
        logs.dirs[0].read_checkpoint(CLEANER_OFFSETS)
        assert logs.dirs[0].health.failure is None
        assert _complete(logs), length
        logs.close()
        again = loaded(folder, segment_bytes=300)
        assert [log.log_end_offset for log in again] == [13, 13]
        again.close()


def test_a_number_that_was_cut_off_is_not_believed(tmp_path: Path) -> None:
    """The end of a log of one segment would otherwise be 1 where it was 12."""
    logs = loaded(tmp_path)
    append(logs.create("t", 0, TOPIC_ID, LogConfig(), NOW_MS), 12)
    logs.close()
    assert (tmp_path / RECOVERY_POINTS).read_bytes() == b"0\n1\nt 0 12\n"
    (tmp_path / RECOVERY_POINTS).write_bytes(b"0\n1\nt 0 1")
    logs = loaded(tmp_path)
    assert [log.log_end_offset for log in logs] == [12]
    logs.close()


@pytest.mark.parametrize(
    "content", [b"\x00" * 20, b"\xff\xfe garbage", b"1\n0\n", b"0\n1\nt 0\n", b"0\n1\nt x 5\n"]
)
def test_a_checkpoint_that_is_no_checkpoint_counts_as_empty(tmp_path: Path, content: bytes) -> None:
    _filled(tmp_path)
    for name in (RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS):
        (tmp_path / name).write_bytes(content)
    logs = loaded(tmp_path, segment_bytes=300)
    assert _complete(logs)
    assert logs.high_watermarks() == {}
    logs.close()


def test_strange_files_and_folders_are_left_alone(tmp_path: Path) -> None:
    _filled(tmp_path)
    strange = [
        *(tmp_path / "notes.txt", tmp_path / "x-1.tmp", tmp_path / ".hidden", tmp_path / "t-0.bak"),
        *(tmp_path / "t-0" / name for name in ("notes.txt", "7.log", "abc.log", "1" * 20 + ".logs", ".log")),
    ]
    for path in strange:
        path.write_bytes(b"not mine")
    for path in (tmp_path / "lost+found", tmp_path / "-5", tmp_path / "t-", tmp_path / "t-0" / "sub"):
        path.mkdir()
        strange.append(path)
    logs = loaded(tmp_path, segment_bytes=300)
    assert sorted(log.name for log in logs) == ["t-0", "t-1"]
    assert _complete(logs)
    assert logs.dirs[0].health.failure is None
    logs.close()
    assert all(path.exists() for path in strange)


def test_a_file_in_the_place_of_a_partitions_folder_is_that_partitions_problem_only(tmp_path: Path) -> None:
    logs = loaded(tmp_path)
    (tmp_path / "t-0").write_text("in the way")
    with pytest.raises(KafkaError, match="t-0 is in the way") as refused:
        logs.create("t", 0, TOPIC_ID, LogConfig(), NOW_MS)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert logs.dirs[0].health.failure is None
    append(logs.create("t", 1, TOPIC_ID, LogConfig(), NOW_MS))
    (tmp_path / "t-0").unlink()
    append(logs.create("t", 0, TOPIC_ID, LogConfig(), NOW_MS))
    logs.close()
