"""Which pipelines run on this machine: a small file for each, and a lock that only a live process holds.

`status` and `stop` find a pipeline by them, and the same pipeline is not started twice. No Spark here.
"""

from __future__ import annotations

import fcntl
import os
import signal
import tempfile
import time
from pathlib import Path as FilePath

import msgspec

from mainstem.spark.pipeline.metrics.progress import Snapshot
from mainstem.spark.pipeline.places import state_home

_POLL_S = 0.05


class State(msgspec.Struct):
    """What the file of a pipeline says."""

    name: str
    pid: int
    file: str
    master: str
    checkpoint: str
    group: str
    log: str
    phase: str = "starting"  # then running, stopping, ended or failed
    error: str | None = None
    metrics_port: int | None = None
    snapshot: Snapshot | None = None


def runtime_folder() -> FilePath:
    base = os.environ.get("XDG_RUNTIME_DIR")
    return FilePath(base) / "mainstem" / "pipelines" if base else state_home() / "running"


class AlreadyRunning(Exception):
    """Another process runs this pipeline."""

    def __init__(self, state: State | None, name: str) -> None:
        who = f" (process {state.pid})" if state is not None else ""
        super().__init__(f"the pipeline {name} is running already{who}")


class Registration:
    """A pipeline's own entry, from its start to its end. Use as a context manager."""

    def __init__(self, state: State, folder: FilePath | None = None) -> None:
        self.state = state
        self._folder = folder or runtime_folder()
        self._lock: int | None = None

    def __enter__(self) -> Registration:
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._folder / f"{self.state.name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise AlreadyRunning(read_state(self.state.name, self._folder), self.state.name) from None
        # Java must not inherit it: it may outlive us for a moment.
        os.set_inheritable(lock, False)
        self._lock = lock
        self.write()
        return self

    def __exit__(self, *_: object) -> None:
        self.write()
        if self._lock is not None:
            os.close(self._lock)

    def write(self) -> None:
        """Replace the file, so that a reader sees the old one or the new one."""
        handle, name = tempfile.mkstemp(dir=self._folder, prefix=f".{self.state.name}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(msgspec.json.encode(self.state))
        os.replace(name, self._folder / f"{self.state.name}.json")


def read_state(name: str, folder: FilePath | None = None) -> State | None:
    """The last word of a pipeline, running or not."""
    try:
        content = ((folder or runtime_folder()) / f"{name}.json").read_bytes()
        return msgspec.json.decode(content, type=State)
    except (OSError, msgspec.DecodeError):
        return None


def is_running(name: str, folder: FilePath | None = None) -> bool:
    """Whether the pipeline's process lives: it holds the lock."""
    try:
        lock = os.open((folder or runtime_folder()) / f"{name}.lock", os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(lock)


def known_pipelines(folder: FilePath | None = None) -> list[str]:
    """Every pipeline that was started here, running ones and others."""
    return sorted(file.stem for file in (folder or runtime_folder()).glob("*.json"))


def stop(name: str, timeout_s: float, folder: FilePath | None = None) -> bool:
    """Ask a running pipeline to end after its batch, and wait until it has; False when it takes too long."""
    state = read_state(name, folder)
    if state is None or not is_running(name, folder):
        return True
    os.kill(state.pid, signal.SIGTERM)
    end = time.monotonic() + timeout_s
    while is_running(name, folder):
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S)
    return True
