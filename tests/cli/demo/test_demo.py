"""`mainstem demo` as a stranger runs it: everything starts, comes out once, and nothing is left running."""

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mainstem.cli.demo.display import Counts, make_display
from mainstem.testing import Broker
from tests.cli.command import run_command
from tests.support.kafka_peer import java

# A busy machine takes its time to start Spark.
TIMEOUT_S = 850


def _start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """The command as a process; its temporary files are in the folder, so what it starts can be told."""
    java()
    temporary = folder / "tmp"
    temporary.mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "mainstem", "demo", *arguments],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(temporary), "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _running(folder: Path) -> list[str]:
    """The command lines of all processes that have to do with the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (process / "cmdline").read_bytes()
            environment = (process / "environ").read_bytes()
            if str(folder).encode() in line + environment and int(process.name) != os.getpid():
                found.append(line.replace(b"\0", b" ").decode(errors="replace"))
    return found


@pytest.mark.peer
@pytest.mark.timeout(TIMEOUT_S)
def test_everything_comes_out_once_and_nothing_is_left_running(tmp_path: Path) -> None:
    process = _start(tmp_path, "--seconds", "4", "--rate", "50", "--keep", "demo")
    shown, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, shown
    assert _running(tmp_path) == []
    assert "everything came out exactly once" in shown
    rows = re.findall(r"^(?:in|out) .+$", shown, re.M)
    assert len(rows) == 6
    assert sum(row.endswith("each once") for row in rows) == 4
    assert "WARN" not in shown
    assert "WARN" in (tmp_path / "demo" / "spark.log").read_text()

    _look_where_it_says(tmp_path, shown)


def _look_where_it_says(folder: Path, shown: str) -> None:
    """The commands that the demo ends with, typed as they stand."""
    told = dict(re.findall(r"^  (\S.*?) +# (.+)$", shown, re.M))
    assert "mainstem groups lag shop" in told
    assert any(command.startswith("cat demo/pipeline.yaml") for command in told)
    checked = run_command("pipeline", "validate", str(folder / "demo" / "pipeline.yaml"), "--no-sql")
    assert checked.returncode == 0, checked.stderr
    with Broker(data_dir=folder / "demo" / "broker") as broker:
        environment = {"MAINSTEM_BOOTSTRAP": broker.bootstrap_servers}
        for command in told:
            if command.startswith(("mainstem consume", "mainstem groups")):
                done = run_command(*command.split()[1:], environment=environment)
                assert done.returncode == 0, done.stderr
                assert done.stdout
        lag = run_command("groups", "lag", "shop", environment=environment).stdout
        assert "orders" in lag
        assert "payments" in lag


@pytest.mark.peer
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_it_can_be_interrupted_at_any_time(tmp_path: Path, number: signal.Signals, code: int) -> None:
    process = _start(tmp_path, "--seconds", "600", "--rate", "5")
    deadline = time.monotonic() + TIMEOUT_S / 2
    while not any("org.apache.spark" in line for line in _running(tmp_path)):
        assert process.poll() is None
        assert time.monotonic() < deadline, _running(tmp_path)
        time.sleep(0.1)
    os.killpg(process.pid, number)
    shown, _ = process.communicate(timeout=TIMEOUT_S / 2)
    assert process.returncode == code, shown
    assert "Traceback" not in shown
    assert _running(tmp_path) == []
    assert list((tmp_path / "tmp").glob("mainstem-demo-*")) == []


def test_without_java_nothing_starts(tmp_path: Path) -> None:
    result = run_command(
        "demo", "--keep", str(tmp_path / "demo"), environment={"JAVA_HOME": str(tmp_path), "PATH": ""}
    )
    assert result.returncode == 1
    assert "Spark needs Java" in result.stderr
    assert "17 or later" in result.stderr
    assert not (tmp_path / "demo").exists()


def test_a_java_that_is_too_old_is_named(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    for told, version in (("1.8.0_392", 8), ("11.0.2", 11)):
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{told}\"' >&2\n")
        java.chmod(0o755)
        result = run_command(
            "demo", "--keep", str(tmp_path / "demo"), environment={"JAVA_HOME": str(tmp_path)}
        )
        assert result.returncode == 1
        assert f"Spark needs Java 17 or later, and {java} is of version {version}" in result.stderr
    assert not (tmp_path / "demo").exists()


@pytest.mark.peer
def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    result = run_command("demo", "--keep", str(tmp_path))
    assert result.returncode == 1
    assert "is not empty" in result.stderr
    assert os.listdir(tmp_path) == ["mine"]


@pytest.mark.peer
def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with Broker() as broker:
        port = str(broker.port)
        result = run_command("demo", "--keep", str(tmp_path / "demo"), "--port", port)
    assert result.returncode == 1
    assert port in result.stderr
    assert "--port" in result.stderr


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_table_on_a_terminal_and_lines_elsewhere() -> None:
    counts = Counts("running", 1200, 900, "12 behind (<1 s)", "up to date", 700, 500, 11, 1.5)
    terminal, pipe = _Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        with make_display(stream) as display:
            display.show(counts)
            display.show(counts)
    assert re.search(r"topic orders\s+1,200\s+12 behind", terminal.getvalue())
    assert re.search(r"table, Parquet\s+500", terminal.getvalue())
    (line,) = pipe.getvalue().splitlines()
    assert "1,200 orders and 900 payments in, 700 paid orders, 500 rows and 11 dead letters out" in line
