"""What is told of a node from its log file."""

from pathlib import Path

import pytest

from mainstem.cli.up import node_log
from mainstem.cli.up.node_log import LastWords, last_warning, last_words, open_log


def log(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "node-1.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_the_last_error_comes_with_its_hint(tmp_path: Path) -> None:
    path = log(tmp_path, "mainstem: old", "12:00:00 INFO x", "mainstem: port 1 is in use", "  -> use another")
    assert last_words(path) == LastWords("port 1 is in use", "use another")
    assert last_words(log(tmp_path, "mainstem: odd", "Segmentation fault")) == LastWords("odd", "")
    assert last_words(log(tmp_path, "Traceback", "  ValueError: x ")) == LastWords("ValueError: x", "")
    assert last_words(log(tmp_path)) == LastWords("", "")


def test_the_last_warning_is_that_of_this_start(tmp_path: Path) -> None:
    before = "12:00:00 ERROR of the start before"
    path = log(tmp_path, before, "12:00:01 WARNING no leader", "12:00:02 INFO mind you, WARNING", "    trace")
    assert last_warning(path, 0) == "no leader"
    assert last_warning(path, len(before) + 1) == "no leader"
    assert last_warning(log(tmp_path, before), len(before) + 1) == ""
    as_json = '{"time":"t","level":"error","logger":"x","message":"no disk"}'
    assert last_warning(log(tmp_path, as_json, '{"level":"info","message":"y"}', "[]"), 0) == "no disk"


def test_a_large_log_makes_room_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = log(tmp_path, "much")
    open_log(path).close()
    assert path.read_text() == "much\n"
    monkeypatch.setattr(node_log, "_BYTES_MAX", 4)
    open_log(path).close()
    assert path.read_text() == ""
    assert (tmp_path / "node-1.log.1").read_text() == "much\n"
