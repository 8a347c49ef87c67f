"""Follows a page of the documentation as its reader would: block by block, in one folder, with real commands.

`mainstem up` is left running, as in a terminal of its own, until the page starts another or ends. The only
things changed are the ports (9092 and 9644 become free ones) and the home folder (a temporary one).
"""

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from mainstem.local_cluster.ports import free_ports, is_free
from tests.docs.markdown import Block, console_steps, matches

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 60
# Spark alone takes a minute to start where others keep the machine busy.
SPARK_TIMEOUT_S = 600
_UP = re.compile(r"^(?:\./)?mainstem up\b.*$", re.M)
_DEFAULT_PORT = "9092"
_METRICS_PORT = "9644"


class Reader:
    """One reading of one page. Use as a context manager: what is still running at the end is stopped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = _free_port()
        self._metrics_port = _free_port()
        self._broker: subprocess.Popen[str] | None = None
        temporary = folder / ".tmp"
        temporary.mkdir()
        commands = folder / ".bin"
        commands.mkdir()
        (folder / "mainstem").symlink_to(ROOT / "mainstem")
        (commands / "mainstem").symlink_to(ROOT / "mainstem")
        # Compiled code of the user's, as it would be there after the first use.
        cache_home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        for name in ("python", "python3"):
            (commands / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
            (commands / name).chmod(0o755)
        (commands / "pytest").write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -m pytest -p mainstem.testing.pytest_plugin "$@"\n'
        )
        (commands / "pytest").chmod(0o755)
        spark_pipelines = Path(sys.executable).parent / "spark-pipelines"
        (commands / "spark-pipelines").write_text(f'#!/bin/sh\nexec "{spark_pipelines}" "$@"\n')
        (commands / "spark-pipelines").chmod(0o755)
        self._environment = os.environ | {
            "HOME": str(folder),
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
            "MAINSTEM_BOOTSTRAP": f"localhost:{self.port}",
            "PYTHONPATH": str(ROOT / "src"),
            "PYSPARK_PYTHON": sys.executable,
            "XDG_CACHE_HOME": cache_home,
            "COLUMNS": "120",
            "TMPDIR": str(temporary),
        }
        for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
            self._environment.pop(name, None)

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_broker()

    def follow(self, block: Block) -> None:
        """Do what the block says; an AssertionError tells what came out otherwise."""
        text = re.sub(rf"\b{_DEFAULT_PORT}\b", str(self.port), block.text)
        text = re.sub(rf"\b{_METRICS_PORT}\b", str(self._metrics_port), text)
        if block.argument:
            file = self.folder / block.argument
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        elif block.language == "python":
            self._succeed([sys.executable, "-c", text], block)
        elif block.language == "console":
            self._hold_session(text, block)
        elif _UP.search(text):
            self._start_broker(text, block)
        else:
            self._succeed(["bash", "-euo", "pipefail", "-c", text], block)

    def _succeed(self, command: list[str], block: Block) -> None:
        done = self._run(command)
        assert done.returncode == 0, (
            f"line {block.line}, exit code {done.returncode}:\n{block.text}\n{done.stdout}"
        )

    def _hold_session(self, text: str, block: Block) -> None:
        for command, expected in console_steps(text):
            printed = self._run(["bash", "-c", command]).stdout
            assert matches(expected, printed), (
                f"line {block.line}: $ {command}\n{printed}\nbut shown is\n{expected}"
            )

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """To the end of it; what takes too long is ended with all that it started."""
        timeout_s = SPARK_TIMEOUT_S if uses_spark(" ".join(command)) else TIMEOUT_S
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            printed, _ = process.communicate()
            raise AssertionError(f"{command[-1]}\nhas not ended within {timeout_s} s\n{printed}") from None
        return subprocess.CompletedProcess(command, process.returncode, printed)

    def _start_broker(self, text: str, block: Block) -> None:
        self._stop_broker()
        text = _UP.sub(lambda match: self._with_port(match[0]), text)
        with open(self.folder / ".broker.log", "w") as log:
            self._broker = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", text],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self._broker.stdout is not None
        printed, deadline = b"", time.monotonic() + TIMEOUT_S
        while select.select([self._broker.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
            chunk = os.read(self._broker.stdout.fileno(), 4096)
            printed += chunk
            if re.search(rb"^mainstem ready .*\n", printed, re.M):
                return
            assert chunk, f"line {block.line}: it has ended\n{(self.folder / '.broker.log').read_text()}"
        raise AssertionError(f"line {block.line}: the broker is not ready")

    def _with_port(self, command: str) -> str:
        return (
            command
            if re.search(r"--(port|config|set listeners)\b", command)
            else f"{command} --port {self.port}"
        )

    def _stop_broker(self) -> None:
        """Ctrl-C, which goes to all processes in the foreground of a terminal."""
        if self._broker is not None:
            os.killpg(self._broker.pid, signal.SIGINT)
            self._broker.wait(TIMEOUT_S)
            assert self._broker.stdout is not None
            self._broker.stdout.close()
            self._broker = None


def uses_spark(text: str) -> bool:
    """Whether these commands start Spark."""
    return (
        re.search(r"mainstem demo|pipeline run|spark-pipelines|pipeline explain (?!.*--no-spark)", text)
        is not None
    )


def _free_port() -> int:
    """A port with two more behind it, for the nodes of a cluster."""
    while True:
        (port,) = free_ports("localhost", 1)
        if is_free("localhost", port + 1) and is_free("localhost", port + 2):
            return port
