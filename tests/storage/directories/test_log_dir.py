"""A log directory: locked by one, identified, and with folders that are told apart by name."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mainstem.storage.directories.log_dir import DELETE_SUFFIX, LogDir, retired_folder_name
from mainstem.storage.errors import LogDirInUseError, LogDirInvalidError
from mainstem.storage.files.real_files import RealFiles
from tests.storage.log_helpers import NOW_MS


def new_uuid() -> bytes:
    return bytes(range(16))


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    first = LogDir(RealFiles(), tmp_path / "data")
    with pytest.raises(LogDirInUseError, match="in use"):
        LogDir(RealFiles(), tmp_path / "data")
    first.release()
    LogDir(RealFiles(), tmp_path / "data").release()


def test_another_process_is_kept_out_too(tmp_path: Path) -> None:
    owner = LogDir(RealFiles(), tmp_path)
    program = (
        "import sys; from pathlib import Path; from mainstem.storage.directories.log_dir import LogDir\n"
        "from mainstem.storage.files.real_files import RealFiles\n"
        "LogDir(RealFiles(), Path(sys.argv[1]))"
    )
    other = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert other.returncode != 0
    assert "in use by another broker" in other.stderr
    owner.release()


def test_a_directory_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LogDirInvalidError, match="cannot use log directory"):
        LogDir(RealFiles(), tmp_path / "file" / "data")


def test_a_new_directory_is_given_an_identity_that_stays(tmp_path: Path) -> None:
    log_dir = LogDir(RealFiles(), tmp_path)
    with pytest.raises(LogDirInvalidError, match="no cluster id"):
        log_dir.identify(1, None, new_uuid, NOW_MS)
    meta = log_dir.identify(1, "cluster", new_uuid, NOW_MS)
    assert (meta.cluster_id, meta.node_id, meta.directory_id) == ("cluster", 1, new_uuid())
    assert log_dir.identify(1, None, lambda: bytes(16), NOW_MS) == meta
    with pytest.raises(LogDirInvalidError, match=r"node 1, this is node 2 \(node.id\)"):
        log_dir.identify(2, None, new_uuid, NOW_MS)
    with pytest.raises(LogDirInvalidError, match="belongs to cluster cluster"):
        log_dir.identify(1, "other", new_uuid, NOW_MS)
    log_dir.release()


def test_folders_are_told_apart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log_dir = LogDir(RealFiles(), tmp_path)
    unique = "0123456789abcdef" * 2
    for name in (
        "orders-0",
        "a-b-c-12",
        "__cluster_metadata-0",
        f"orders-1.{unique}-delete",
        f"orders-2.{unique}-future",
        f"orders-3.{unique}-stray",
        "lost+found",
    ):
        (tmp_path / name).mkdir()
    (tmp_path / "not-0").write_text("a file")
    found = [(topic, partition, path.name) for topic, partition, path in log_dir.partition_folders()]
    assert found == [("a-b-c", 12, "a-b-c-12"), ("orders", 0, "orders-0")]
    assert [path.name for path in log_dir.deleted_folders()] == [f"orders-1.{unique}-delete"]
    assert "lost+found" in caplog.text
    future = f"orders-2.{unique}-future"
    assert log_dir.future_folders() == [("orders", 2, tmp_path / future)]
    assert "-stray" in caplog.text
    log_dir.release()


def test_a_directory_that_is_taken_away_or_replaced_is_offline(tmp_path: Path) -> None:
    there, gone, replaced = (LogDir(RealFiles(), tmp_path / name) for name in ("there", "gone", "replaced"))
    shutil.rmtree(gone.path)
    replaced.path.rename(tmp_path / "aside")
    LogDir(RealFiles(), replaced.path).release()
    for log_dir in (there, gone, replaced):
        log_dir.check_identity()
        log_dir.release()
    assert there.health.failure is None
    assert "not there any more" in (gone.health.failure or "")
    assert "another directory" in (replaced.health.failure or "")


def test_names_of_deleted_folders_fit_the_file_system() -> None:
    name = retired_folder_name("x" * 249, 1234567, "f" * 32, DELETE_SUFFIX)
    assert len(name) == 255
    assert name.endswith("-1234567." + "f" * 32 + "-delete")


def test_a_damaged_checkpoint_counts_as_empty(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log_dir = LogDir(RealFiles(), tmp_path)
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n7\nt 0 1\n")
    assert log_dir.recovery_points() == {}
    assert "damaged checkpoint" in caplog.text
    log_dir.release()
