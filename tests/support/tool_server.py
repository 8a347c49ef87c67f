"""Runs Kafka's command-line tools in one Java process, see ToolServer.java: to start one for each run takes
longer than most runs.
"""

import select
import struct
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock


class PeerMissingError(Exception):
    """A program that the tests compare with is not on this machine."""


@dataclass(frozen=True)
class ToolResult:
    """What one run of a command-line tool gave."""

    returncode: int
    stdout: str
    stderr: str

    def check(self) -> str:
        assert self.returncode == 0, f"exit code {self.returncode}\n{self.stdout}\n{self.stderr}"
        return self.stdout


class ToolServer:
    """One Java process, started for the first run; it ends when the end of its input does."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._command = command
        self._log = log
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, words: Sequence[str], stdin: bytes, timeout_seconds: float) -> ToolResult:
        with self._lock:
            process = self._process or self._start()
            deadline = time.monotonic() + timeout_seconds
            request = [_text(word.encode()) for word in words]
            assert process.stdin is not None
            process.stdin.write(struct.pack(">i", len(request)) + b"".join(request) + _text(stdin))
            process.stdin.flush()
            try:
                (code,) = struct.unpack(">i", self._read(process, 4, deadline))
                output, errors = (self._read_text(process, deadline) for _ in range(2))
            except BaseException:
                self._process = None
                process.kill()
                process.wait()
                raise
            return ToolResult(code, output, errors)

    def _start(self) -> subprocess.Popen[bytes]:
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0
            )
        return self._process

    def _read_text(self, process: subprocess.Popen[bytes], deadline: float) -> str:
        (size,) = struct.unpack(">i", self._read(process, 4, deadline))
        return self._read(process, size, deadline).decode()

    def _read(self, process: subprocess.Popen[bytes], size: int, deadline: float) -> bytes:
        assert process.stdout is not None
        data = b""
        while len(data) < size:
            if not select.select([process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the tool has not come to its end")
            piece = process.stdout.read(size - len(data))
            if not piece:
                self._explain_end(process.wait())
            data += piece
        return data

    def _explain_end(self, code: int) -> None:
        text = self._log.read_text()
        if "jdk.compiler" in text:
            raise PeerMissingError("Java has no compiler: run ./test, or install openjdk-17-jdk-headless")
        raise AssertionError(f"Java ended with exit code {code} in the middle of a run\n{text}")


def _text(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data
