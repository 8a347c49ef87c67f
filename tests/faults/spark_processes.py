"""The processes of a running Spark program: which there are, and a sure end for all of them.

Only what descends from a process that was started here is ever signalled, each by its own id.
"""

import os
import signal
import subprocess
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import IO

_END_SECONDS_MAX = 60
Process = tuple[int, str]  # the id and the command line


def descendants(pid: int) -> list[Process]:
    """All processes below `pid`, at this moment."""
    children: dict[int, list[int]] = defaultdict(list)
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name in parentheses may hold anything; the parent comes two fields behind it.
            fields = status.read_text().rpartition(")")[2].split()
            children[int(fields[1])].append(int(status.parent.name))
    found: list[Process] = []
    left = list(children[pid])
    while left:
        child = left.pop()
        left += children[child]
        with suppress(OSError):
            command = (
                Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
            found.append((child, command))
    return found


class SparkProgram:
    """A Spark program under way."""

    def __init__(self, command: list[str], log: IO[bytes], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment, start_new_session=True
        )

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    def wait(self, timeout_s: float) -> int:
        return self._process.wait(timeout_s)

    def _below(self, *words: str) -> list[int]:
        return [
            pid for pid, command in descendants(self._process.pid) if all(word in command for word in words)
        ]

    def driver(self) -> list[int]:
        """The Python program and its JVM."""
        return [self._process.pid, *self._below("SparkSubmit")]

    def executors(self) -> list[int]:
        """The JVMs of executors; none in local mode."""
        return self._below("CoarseGrainedExecutorBackend")

    def python_workers(self) -> list[int]:
        """Python processes of tasks, and of the driver's planning and committing."""
        return self._below("pyspark.daemon")

    def kill_driver(self) -> list[Process]:
        """Kill the driver as a crash would; what else there was is left to notice by itself."""
        others = descendants(self._process.pid)
        for pid in self.driver():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        return others

    def close(self) -> None:
        """End everything."""
        await_end(self.kill_driver() if self.returncode is None else [])


def await_end(processes: list[Process]) -> None:
    """Wait until these are gone, and kill those that stay."""
    deadline = time.monotonic() + _END_SECONDS_MAX
    for pid, command in processes:
        while _is_same(pid, command):
            if time.monotonic() > deadline:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


def _is_same(pid: int, command: str) -> bool:
    try:
        now = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return False
    return bool(now) and now == command
