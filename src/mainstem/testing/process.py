"""`Broker`: Mainstem in a process of its own, for the length of a `with` block.

It must never leave anything behind: the child ends when this process ends, however that happens, because it
watches a pipe whose other end is held here. Nothing of the broker is imported into the calling process.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from mainstem.local_cluster.node_process import NodeEndedError, NodeProcess
from mainstem.testing.errors import BrokerError
from mainstem.testing.settings import SettingValue, setting_texts

if TYPE_CHECKING:
    from mainstem.storage.files.files import Files
    from mainstem.testing.in_process import InProcessBroker

LOG_LINES_SHOWN = 15


class Broker:
    """One broker process. Settings carry Kafka's names; without `data_dir` its data is temporary."""

    def __init__(
        self,
        config: Mapping[str, SettingValue] | None = None,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        uvloop: bool = True,
        start_timeout_s: float = 30.0,
        stop_timeout_s: float = 30.0,
    ) -> None:
        self._settings = setting_texts(config)
        self._given_data_dir = Path(data_dir) if data_dir is not None else None
        self._temporary: Path | None = None
        self._host = host
        self._port = port
        self._uvloop = uvloop
        self._start_timeout_s = start_timeout_s
        self._stop_timeout_s = stop_timeout_s
        self._process: NodeProcess | None = None
        self._log: IO[bytes] | None = None
        self._ready: dict[str, str] = {}

    @staticmethod
    def in_process(
        config: Mapping[str, SettingValue] | None = None,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        files: Files | None = None,
    ) -> InProcessBroker:
        """A broker inside the running event loop: `async with Broker.in_process() as broker`."""
        from mainstem.testing.in_process import InProcessBroker

        return InProcessBroker(config, data_dir=data_dir, host=host, port=port, files=files)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def bootstrap_servers(self) -> str:
        """What a client wants as `bootstrap.servers`: HOST:PORT."""
        if not self._ready:
            raise BrokerError("the broker was not started: use `with Broker() as broker`")
        return self._ready["bootstrap"]

    @property
    def host(self) -> str:
        """The host of `bootstrap_servers`."""
        return self.bootstrap_servers.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port of `bootstrap_servers`; it stays the same over `restart`."""
        return int(self.bootstrap_servers.rpartition(":")[2])

    @property
    def metrics_url(self) -> str:
        """Where the metrics are, with `mainstem.metrics.port` among the settings."""
        if "metrics" not in self._ready:
            raise BrokerError('the broker has no metrics port: set "mainstem.metrics.port" to 0')
        return self._ready["metrics"]

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        if self._process is None:
            raise BrokerError("the broker is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        """True while the process is alive."""
        return self._process is not None and self._process.running

    @property
    def data_dir(self) -> Path:
        """The directory that holds the partitions' folders."""
        directory = self._given_data_dir or self._temporary
        if directory is None:
            raise BrokerError("the broker has no data directory before its first start and after close()")
        return directory

    @property
    def log(self) -> str:
        """Everything that the broker has logged since this object was made."""
        if self._log is None:
            return ""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode(errors="replace")

    def start(self) -> Self:
        """Start the process and return when it is ready for clients."""
        if self.running:
            raise BrokerError("the broker is running already")
        if self._given_data_dir is None and self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="mainstem-"))
        if self._log is None:
            self._log = tempfile.TemporaryFile(mode="a+b", prefix="mainstem-log-")  # noqa: SIM115 - closed in close()
        self._process = NodeProcess(self._options(), self._log.fileno(), program=self._program())
        try:
            self._await_ready(self._process)
        except BaseException:
            self.close()
            raise
        self._port = self.port
        return self

    def stop(self) -> int:
        """Shut down cleanly and keep the data; returns the exit code. Kills a broker that does not obey."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process as a crash would (SIGKILL); the data stays as it is at this moment."""
        self._end(signal.SIGKILL)

    def restart(self) -> Self:
        """Stop, when it still runs, and start again: the same port, the same data."""
        if self._process is not None:
            self.stop()
        return self.start()

    def close(self) -> None:
        """Stop, and remove what is temporary."""
        if self._process is not None:
            self.stop()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None
        if self._log is not None:
            self._log.close()
            self._log = None
        self._ready = {}

    def _program(self) -> list[str]:
        return [sys.executable, "-m", "mainstem"]

    def _options(self) -> list[str]:
        options = ["--host", self._host, "--port", str(self._port)]
        options += ["--log-format", "text"]  # people read it when a test fails
        options += ["--data", str(self.data_dir)]
        if self._temporary is not None:
            options.append("--ephemeral")
        if not self._uvloop:
            options.append("--no-uvloop")
        for name, value in self._settings.items():
            options += ["--set", f"{name}={value}"]
        return options

    def _await_ready(self, process: NodeProcess) -> None:
        try:
            process.await_ready(self._start_timeout_s)
        except TimeoutError as error:
            raise BrokerError(self._explain(f"was {error}")) from None
        except NodeEndedError as error:
            raise BrokerError(self._explain(str(error))) from None
        self._ready = process.ready

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            raise BrokerError("the broker is not running")
        return process.end(number, self._stop_timeout_s)

    def _explain(self, what: str) -> str:
        return "\n".join([f"the broker {what}", *self.log.splitlines()[-LOG_LINES_SHOWN:]])
