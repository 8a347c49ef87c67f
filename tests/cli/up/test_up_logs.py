"""What `mainstem up` writes to standard error: JSON for programs, text for people."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

UP = [sys.executable, "-m", "mainstem", "up", "--port", "0"]


@pytest.fixture
def foreign_folder(tmp_path: Path) -> Path:
    """A data directory in which something lies that draws a warning."""
    (tmp_path / "not a partition").mkdir()
    return tmp_path


def errors_of(options: list[str], stderr: int = subprocess.PIPE) -> str:
    """Standard error of a broker that was started and stopped."""
    process = subprocess.Popen([*UP, *options], stdout=subprocess.PIPE, stderr=stderr, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("mainstem ready ")
        process.send_signal(signal.SIGTERM)
        return process.communicate(timeout=60)[1] or ""
    finally:
        process.kill()


def test_a_program_gets_one_json_object_for_each_event(foreign_folder: Path) -> None:
    lines = errors_of(["--data", str(foreign_folder)]).splitlines()
    events = [json.loads(line) for line in lines]
    assert [event for event in events if "not a partition" in event["message"]]
    assert {"time", "level", "logger", "message"} <= set.intersection(*(set(event) for event in events))


def test_a_person_gets_text(foreign_folder: Path) -> None:
    parent, terminal = pty.openpty()
    try:
        errors_of(["--data", str(foreign_folder)], stderr=terminal)
        text = os.read(parent, 65536).decode()
    finally:
        os.close(parent)
        os.close(terminal)
    assert " WARNING ignoring " in text
    assert "{" not in text


def test_the_format_can_be_chosen(foreign_folder: Path) -> None:
    assert " WARNING ignoring " in errors_of(["--data", str(foreign_folder), "--log-format", "text"])


def test_starting_and_stopping_without_trouble_is_no_event(tmp_path: Path) -> None:
    assert errors_of(["--data", str(tmp_path)]) == ""
