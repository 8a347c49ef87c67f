"""Opening a partition's folder: what counts, what is left over, and what is believed without looking."""

from pathlib import Path

import pytest

from mainstem.storage.files.checkpoints import read_partition_metadata
from mainstem.storage.files.real_files import RealFiles
from mainstem.storage.log import Log
from tests.storage.log_helpers import NOW_MS, TOPIC_ID, append, files, open_log, read_batches


def closed(tmp_path: Path, batches: int = 20) -> Log:
    log = open_log(tmp_path, segment_bytes=1000)
    for _ in range(batches):
        append(log, 2)
    log.close()
    return log


def test_a_new_folder_has_an_empty_segment_and_the_topic_id(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert sorted(path.name for path in Path(log.directory).iterdir()) == [
        "00000000000000000000.log",
        "partition.metadata",
    ]
    assert read_partition_metadata(RealFiles(), log.directory) == TOPIC_ID
    assert (log.log_start_offset, log.log_end_offset, log.size) == (0, 0, 0)


def test_after_a_clean_stop_no_file_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed(tmp_path)
    for path in (tmp_path / "t-0").glob("*.log"):
        path.chmod(0)
    log = open_log(tmp_path, clean=True, recovery_point=40)
    assert (log.log_start_offset, log.log_end_offset) == (0, 40)
    assert all(segment.handle is None for segment in log.segments)
    assert len(log.environment.handles) == 0


def test_what_a_clean_stop_cannot_have_left_is_looked_at(tmp_path: Path) -> None:
    for claimed in (0, 3, 10**9):
        log = closed(tmp_path / str(claimed))
        assert open_log(tmp_path / str(claimed), clean=True, recovery_point=claimed).log_end_offset in (
            40,
            claimed,
        )
        if claimed < log.segments.bases[-1]:
            assert open_log(tmp_path / str(claimed), clean=True, recovery_point=claimed).log_end_offset == 40


def test_a_missing_index_is_noticed_even_after_a_clean_stop(tmp_path: Path) -> None:
    log = closed(tmp_path)
    path = files(log, ".timeindex")[0]
    content = path.read_bytes()
    path.unlink()
    assert open_log(tmp_path, clean=True, recovery_point=40).log_end_offset == 40
    assert path.read_bytes() == content


def test_leftovers_of_a_crash_are_removed(tmp_path: Path) -> None:
    log = closed(tmp_path)
    folder = Path(log.directory)
    leftovers = [
        "00000000000000000000.log.deleted",
        "00000000000000000000.index.deleted",
        "leader-epoch-checkpoint.tmp",
        "00000000000000000000.log.cleaned",
        "00000000000000009999.index",
        "00000000000000009999.timeindex",
    ]
    for name in leftovers:
        (folder / name).write_bytes(b"x")
    (folder / "notes.txt").write_text("mine")
    log = open_log(tmp_path, clean=True, recovery_point=40)
    names = {path.name for path in folder.iterdir()}
    assert not names.intersection(leftovers)
    assert "notes.txt" in names
    assert len(read_batches(log)) == 20


def test_old_snapshots_of_clean_stops_do_not_pile_up(tmp_path: Path) -> None:
    closed(tmp_path)
    for end in range(41, 46):
        log = open_log(tmp_path, clean=True, recovery_point=end - 1, segment_bytes=10**6)
        append(log)
        log.close()
    log = open_log(tmp_path, clean=True, recovery_point=45)
    offsets = {int(path.stem) for path in files(log, ".snapshot")}
    assert offsets <= {*log.segments.bases, 45}


def test_a_start_offset_inside_a_segment_is_kept_by_the_checkpoint(tmp_path: Path) -> None:
    log = closed(tmp_path)
    log = Log.open(
        tmp_path / "t-0", "t", 0, None, log.config, now_ms=NOW_MS, recovery_point=40, log_start_offset=17
    )
    assert log.log_start_offset == 17
    assert log.topic_id == TOPIC_ID


def test_a_log_that_ends_before_its_start_offset_is_emptied(tmp_path: Path) -> None:
    log = closed(tmp_path)
    log = Log.open(tmp_path / "t-0", "t", 0, None, log.config, now_ms=NOW_MS, log_start_offset=50)
    assert (log.log_start_offset, log.log_end_offset) == (50, 50)
    assert append(log) == 50


def test_without_any_segment_the_known_offsets_are_not_used_again(tmp_path: Path) -> None:
    log = closed(tmp_path)
    for path in Path(log.directory).iterdir():
        path.unlink()
    assert open_log(tmp_path, clean=True, recovery_point=40).log_end_offset == 40
