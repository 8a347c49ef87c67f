"""The pipeline of `mainstem demo` as a process of its own: `mainstem pipeline run`, as anybody would type it.

Everything that it starts (Java, Spark's Python workers) is in its session, so that nothing of it can be left
behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mainstem.cli.errors import CommandError

if TYPE_CHECKING:
    from mainstem.spark.pipeline.running.registration import State

NAME = "shop"
FILE = "pipeline.yaml"
SPARK_LOG = "spark.log"
_OUTPUT = "pipeline.log"
_CORES_MAX = 4
_STOP_TIMEOUT_S = 120.0
_KILL_TIMEOUT_S = 15.0
_POLL_S = 0.05
# Java starts sooner when it does not optimise for a long life.
_QUICK_START = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class DemoPipeline:
    """One run. A context manager: when the block ends, nothing of it runs any more."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self._folder = folder
        self._bootstrap = bootstrap
        self._process: subprocess.Popen[bytes] | None = None
        # A state of its own: other pipelines of this name are not its business.
        self._run_folder = folder / "run"

    def __enter__(self) -> DemoPipeline:
        return self

    def start(self) -> None:
        """Write the pipeline's file, and run it."""
        declared = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
        (self._folder / FILE).write_text(declared, encoding="utf-8")
        self._run_folder.mkdir()
        master = f"local[{min(_CORES_MAX, os.cpu_count() or 1)}]"
        command = [sys.executable, "-m", "mainstem", "pipeline", "run", str(self._folder / FILE)]
        command += ["--bootstrap-server", self._bootstrap, "--master", master]
        command += ["--log", str(self._folder / SPARK_LOG), "--conf", _QUICK_START]
        with open(self._folder / _OUTPUT, "wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | {"XDG_RUNTIME_DIR": str(self._run_folder)},
                start_new_session=True,
            )

    def __exit__(self, *_: object) -> None:
        if self._process is None:
            return
        deadline = time.monotonic() + _KILL_TIMEOUT_S
        while (left := _session_members(self._process.pid)) and time.monotonic() < deadline:
            for pid in left:
                _kill(pid)
            self._process.poll()
            time.sleep(_POLL_S)
        self._process.wait()

    def state(self) -> State | None:
        """What the pipeline says of itself."""
        from mainstem.spark.pipeline.running.registration import read_state

        return read_state(NAME, self._run_folder / "mainstem" / "pipelines")

    def check_alive(self) -> None:
        """CommandError when it has ended by itself, with what it said last."""
        assert self._process is not None
        if (code := self._process.poll()) is not None:
            raise self._ended(code)

    def stop(self) -> None:
        """Let it end after the batches that are under way, as `mainstem pipeline stop` does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise CommandError(
                f"the pipeline has not ended within {_STOP_TIMEOUT_S:.0f} s of being asked",
                f"Spark's log: {self._folder / SPARK_LOG}",
            ) from None
        if code != 0:
            raise self._ended(code)

    def _ended(self, code: int) -> CommandError:
        lines = (self._folder / _OUTPUT).read_text(errors="replace").splitlines()
        said = [line for line in lines if line.startswith("mainstem: ")] or lines[-1:]
        reason = said[-1].removeprefix("mainstem: ") if said else f"exit code {code}"
        return CommandError(f"the pipeline failed: {reason}", f"Spark's log: {self._folder / SPARK_LOG}")


def _session_members(session: int) -> list[int]:
    """The processes of a session that still run. A group would not do: Spark's workers have their own."""
    found = []
    for pid in _process_ids():
        try:
            if os.getsid(pid) == session and not _is_zombie(pid):
                found.append(pid)
        except OSError:
            continue  # gone, or not ours to see
    return found


def _process_ids() -> Iterator[int]:
    if os.path.isdir("/proc/self"):
        return (int(name) for name in os.listdir("/proc") if name.isdecimal())
    listed = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, text=True, check=True)
    return (int(word) for word in listed.stdout.split())


def _is_zombie(pid: int) -> bool:
    """Nothing but an entry that its parent, or the system, has not taken notice of."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
