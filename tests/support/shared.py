"""Things that one test session starts once, however many xdist workers it has.

The controlling process makes a folder and names it in the environment, which the workers inherit. The first
worker that asks for a peer starts it under a file lock and leaves its description there; the controlling
process ends everything by process id when the session is over.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER = "MAINSTEM_TEST_SESSION_FOLDER"
_OWNER = "MAINSTEM_TEST_SESSION_PID"
_GUARD = Path(__file__).with_name("guard.py")


def open_session() -> None:
    """Called by the controlling process before any worker starts."""
    os.environ[_FOLDER] = tempfile.mkdtemp(prefix="mainstem-tests-")
    os.environ[_OWNER] = str(os.getpid())


def close_session() -> None:
    """Ends what was started and removes its files."""
    folder = session_folder()
    for pid_file in folder.glob("*.pid"):
        pid = int(pid_file.read_text())
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
            _wait_for_end(pid)
    shutil.rmtree(folder, ignore_errors=True)


def _wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        os.kill(pid, 0)
        time.sleep(0.02)


def session_folder() -> Path:
    return Path(os.environ[_FOLDER])


@contextmanager
def session_lock(name: str) -> Iterator[None]:
    """Held by one process of the session at a time."""
    with open(session_folder() / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def guarded(command: list[str]) -> list[str]:
    """The command under a guard, which ends it when the session ends."""
    return [sys.executable, str(_GUARD), os.environ[_OWNER], *command]


def start_guarded(name: str, command: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a process that lives until the session ends."""
    with open(log, "wb") as output:
        process = subprocess.Popen(
            guarded(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    (session_folder() / f"{name}.pid").write_text(str(process.pid))
    return process


def end_guarded(name: str, *, kindly: bool) -> None:
    """End such a process before the session does, with SIGTERM or SIGKILL, and wait for its end."""
    pid_file = session_folder() / f"{name}.pid"
    pid = int(pid_file.read_text())
    pid_file.unlink()
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGHUP if kindly else signal.SIGTERM)  # what the guard makes of them
        while True:
            _wait_for_end(pid)
