"""Deleted files wait for their time and are taken in small portions."""

from pathlib import Path

from mainstem.storage.files.deletion import DeletionQueue, remove_path
from mainstem.storage.files.real_files import RealFiles


def test_paths_are_due_in_their_order_and_in_portions() -> None:
    queue = DeletionQueue()
    assert len(queue) == 0
    for path, due_ms in (("c", 30), ("a", 10), ("b", 20)):
        queue.add(path, due_ms)
    assert queue.take_due(9, 10) == []
    assert queue.take_due(25, 1) == ["a"]
    assert queue.take_due(25, 10) == ["b"]
    assert len(queue) == 1
    assert queue.take_due(30, 10) == ["c"]


def test_files_and_folders_are_removed_and_missing_ones_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "folder" / "inner" / "file").write_text("x")
    (tmp_path / "file").write_text("x")
    for name in ("folder", "file", "missing"):
        remove_path(RealFiles(), str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_a_clock_that_is_set_back_keeps_nothing_longer() -> None:
    queue = DeletionQueue()
    queue.add("a", 1_000_060)
    assert queue.take_due(1_000_000, 10) == []
    assert queue.take_due(5_000, 10) == []
    assert queue.take_due(5_059, 10) == []
    assert queue.take_due(5_060, 10) == ["a"]
