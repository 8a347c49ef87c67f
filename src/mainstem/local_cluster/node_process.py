"""One node in a process of its own: `mainstem up`, on a leash.

It never outlives whoever started it: it watches a pipe whose other end is held here. What it prints on
standard output is its ready line; what it logs goes to a file.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

READY_PREFIX = "mainstem ready "


class NodeEndedError(Exception):
    """The process ended before it was ready."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"ended at once with exit code {exit_code}")
        self.exit_code = exit_code


class NodeProcess:
    """Started by being made. `ready` is what its ready line said, empty before that."""

    def __init__(
        self,
        options: Sequence[str],
        log: int,
        keep_open: Sequence[int] = (),
        program: Sequence[str] = (sys.executable, "-m", "mainstem"),
    ) -> None:
        self.ready: dict[str, str] = {}
        self._printed = b""
        self._process = subprocess.Popen(
            [*program, "up", *options, "--owner-pipe"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=keep_open,
            start_new_session=True,  # Ctrl-C is for whoever started it, and stops it in order
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Below zero it is the number of a signal, None while the process runs."""
        return self._process.poll()

    @property
    def output(self) -> int:
        """The descriptor that becomes readable when there is something to `read`."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def read(self) -> bool:
        """Take what the process has printed; False when it prints nothing more."""
        chunk = os.read(self.output, 4096)
        self._printed += chunk
        if not self.ready and b"\n" in self._printed:
            self.ready = parse_ready(self._printed.decode())
        return bool(chunk)

    def await_ready(self, timeout_s: float) -> None:
        """Return when it is ready; NodeEndedError when it never will be, else TimeoutError."""
        deadline = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(self.output, selectors.EVENT_READ)
            while not self.ready:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError(f"not ready within {timeout_s} s")
                if not self.read():
                    raise NodeEndedError(self._process.wait())

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self, number: signal.Signals, timeout_s: float) -> int:
        """Send the signal and wait; who does not obey is killed. Returns the exit code."""
        self._process.send_signal(number)
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self.close()
        return code

    def close(self) -> None:
        """Let go of what is held of a process that has ended."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


def parse_ready(line: str) -> dict[str, str]:
    """The fields of `mainstem ready bootstrap=... node=... cluster=... data=...`."""
    if not line.startswith(READY_PREFIX):
        raise ValueError(f"expected the ready line, got {line!r}")
    head, _, data_dir = line.strip().partition(" data=")
    fields = dict(part.split("=", 1) for part in head.removeprefix(READY_PREFIX).split(" "))
    return fields | {"data": data_dir}
