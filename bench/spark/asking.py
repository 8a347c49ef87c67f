"""Asks the program in Spark's process for work. It is started when the first piece is asked for, and one is
enough for a whole run: a JVM that has just started is several times slower.
"""

import atexit
import json
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO, Any

from bench.errors import BenchError
from bench.peers import REPOSITORY

CONNECTOR_VERSION = "4.2.0"
# The names under which Spark knows the two.
OURS, SPARKS = "mainstem", "kafka"

_TIMEOUT_S = 600.0
_END_TIMEOUT_S = 30.0
_LOG_TAIL_LINES = 5


class Spark:
    """One program, which does one piece of work at a time."""

    def __init__(self, command: list[str]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the program runs
        self._process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, work: str, **request: Any) -> Any:
        """Have a piece of work done."""
        return self.watch(None, 1.0, work, **request)

    def watch(self, look: Callable[[], None] | None, every_s: float, work: str, **request: Any) -> Any:
        """The same, and look at something again and again meanwhile."""
        asked, answers = _pipes(self._process)
        deadline = time.monotonic() + _TIMEOUT_S
        try:
            asked.write(json.dumps({"work": work, **request}) + "\n")
            asked.flush()
        except BrokenPipeError:
            raise BenchError(f"Spark has ended: {self._log_tail()}") from None
        while not select.select([answers], [], [], every_s)[0]:
            if time.monotonic() > deadline:
                raise BenchError(f"Spark did not {work} in {_TIMEOUT_S:.0f} s")
            if look:
                look()
        line = answers.readline()
        if not line:
            raise BenchError(f"Spark has ended: {self._log_tail()}")
        answer = json.loads(line)
        if "error" in answer:
            raise BenchError(f"Spark: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the program, which ends with its input."""
        asked, answers = _pipes(self._process)
        try:
            asked.close()
            self._process.wait(_END_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        finally:
            answers.close()
            self._log.close()

    def _log_tail(self) -> str:
        self._log.seek(0)
        return " | ".join(self._log.read().decode(errors="replace").splitlines()[-_LOG_TAIL_LINES:])


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def connector_jars() -> list[Path]:
    folder = REPOSITORY / ".peers" / f"spark-connector-{CONNECTOR_VERSION}"
    jars = sorted(folder.glob("*.jar"))
    if not jars:
        raise BenchError(f"Spark's Kafka connector is not in {folder}: run ./test once, which fetches it")
    return jars


@cache
def spark() -> Spark:
    """The Spark of this run, which ends with it."""
    program = [sys.executable, "-m", "bench.spark.program"]
    started = Spark([*program, *(str(jar) for jar in connector_jars())])
    atexit.register(started.close)
    return started
