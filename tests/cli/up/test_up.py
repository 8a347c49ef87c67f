"""`mainstem up` as a process: how it starts, what it prints, how it stops, and how it refuses."""

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mainstem.cli.up import command as up

UP = [sys.executable, "-m", "mainstem", "up"]
READY = re.compile(r"mainstem ready bootstrap=(\S+):(\d+) node=1 cluster=\S{22} data=(.+)\n")


@contextmanager
def running(
    *options: str, environment: dict[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], re.Match[str]]]:
    """A broker that is ready, with its ready line."""
    process = subprocess.Popen(
        [*UP, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | (environment or {}),
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = READY.fullmatch(line)
        assert match, line + (process.communicate()[1] if not line else "")
        yield process, match
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def refused(*options: str) -> str:
    """The two lines with which a start is refused: what happened, and what to do."""
    done = subprocess.run([*UP, *options], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode not in (0, 130)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert re.fullmatch(r"mainstem: .+\n  -> .+\n", done.stderr), done.stderr
    return done.stderr


def test_port_zero_is_named_in_the_ready_line(tmp_path: Path) -> None:
    with running("--port", "0", "--data", str(tmp_path)) as (_, ready):
        assert ready[1] == "localhost"
        assert ready[3] == str(tmp_path)
        socket.create_connection(("127.0.0.1", int(ready[2])), timeout=10).close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with running("--port", "0", "--data", str(tmp_path)) as (process, _):
        process.send_signal(number)
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_plain_asyncio_serves_too(tmp_path: Path) -> None:
    with running("--port", "0", "--data", str(tmp_path), "--no-uvloop") as (process, ready):
        socket.create_connection(("127.0.0.1", int(ready[2])), timeout=10).close()
        process.terminate()
        assert process.wait(30) == 0


def test_an_ephemeral_broker_leaves_nothing_behind() -> None:
    with running("--port", "0", "--ephemeral") as (process, ready):
        data = Path(ready[3])
        assert data.parent == Path(tempfile.gettempdir())
        assert data.is_dir()
        process.terminate()
        process.wait(30)
        assert not data.exists()


def test_the_default_data_directory_is_in_the_data_home(tmp_path: Path) -> None:
    with running("--port", "0", environment={"XDG_DATA_HOME": str(tmp_path)}) as (_, ready):
        assert ready[3] == str(tmp_path / "mainstem")


def test_a_server_properties_file_starts_it(tmp_path: Path) -> None:
    settings = tmp_path / "server.properties"
    settings.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@localhost:0\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\ncontroller.listener.names=CONTROLLER\n"
        f"log.dirs={tmp_path / 'logs'}\nno.such.thing=1\n"
    )
    with running("--config", str(settings)) as (process, ready):
        assert (ready[1], ready[3]) == ("127.0.0.1", str(tmp_path / "logs"))
        process.terminate()
        assert process.stderr is not None
        assert "no.such.thing" in process.stderr.read()


def test_what_stands_in_the_way_is_named_with_a_next_step(tmp_path: Path) -> None:
    with running("--port", "0", "--data", str(tmp_path / "data")) as (_, ready):
        assert "in use" in refused("--port", "0", "--data", str(tmp_path / "data"))
        assert f"port {ready[2]} is in use" in refused("--port", ready[2], "--ephemeral")
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in refused("--port", "0", "--data", str(tmp_path / "file" / "data"))
    assert "num.partitions" in refused("--ephemeral", "--set", "num.partitons=1")
    assert "num.partitions" in refused("--ephemeral", "--set", "num.partitions=0")
    assert "out of range" in refused("--port", "70000")
    assert "no.such.host.invalid" in refused("--port", "0", "--ephemeral", "--host", "no.such.host.invalid")


def test_a_directory_that_may_not_be_entered_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def denied(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr("mainstem.broker.server.run", denied)
    monkeypatch.setattr("mainstem.logs.configure", lambda *_: None)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert up.main(["--data", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(f"mainstem: cannot use {tmp_path}: Permission denied\n  -> ")


def test_on_a_terminal_it_greets_with_a_banner(tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*UP, "--port", "0", "--data", str(tmp_path)], stdout=terminal, stderr=subprocess.DEVNULL
    )
    os.close(terminal)
    shown = ""
    try:
        while "Ctrl-C" not in shown:
            shown += os.read(controller, 4096).decode()
    finally:
        process.terminate()
        process.wait(30)
        os.close(controller)
    assert "mainstem ready" not in shown
    assert "ready for Kafka clients" in shown
    assert str(tmp_path) in shown.replace("\r\n", "")


def test_a_start_imports_nothing_that_only_clients_need(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "mainstem", "up", "--port", "0", "--data", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.terminate()
    imported = {
        line.rpartition("|")[2].strip().partition(".")[0] for line in process.communicate()[1].splitlines()
    }
    assert "mainstem" in imported
    assert imported & {"typer", "click", "rich", "confluent_kafka", "aiohttp", "numba", "cramjam"} == set()


def test_it_ends_when_its_owner_closes_the_pipe(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*UP, "--port", "0", "--data", str(tmp_path / "data"), "--ephemeral", "--owner-pipe"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"mainstem ready ")
    process.stdin.close()
    assert process.wait(30) == 0
    process.stdout.close()
    assert not (tmp_path / "data").exists()
