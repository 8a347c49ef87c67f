"""Starting and stopping the brokers that are compared, each in a process and a data directory of its own.

Both get the same settings. A peer must never listen on anything but loopback, and always ends with its run.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from bench.errors import BenchError
from bench.stats import EARLIER, KAFKA, MAINSTEM
from bench.wire import free_port, wait_for_metadata

REPOSITORY = Path(__file__).resolve().parent.parent
KAFKA_VERSION = "4.3.0"
START_TIMEOUT_S = 300.0  # ten thousand partitions take their time
STOP_TIMEOUT_S = 120.0

SETTINGS = {
    # Deleted topics must leave the disk, and with it the page cache, before the next phase begins.
    "log.segment.delete.delay.ms": "500",
    "log.initial.task.delay.ms": "500",
    # A rebalance shall show the broker's work: with Kafka's defaults nearly all of it is waiting.
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
}

# What Kafka's own start script gives the JVM.
_JVM_OPTIONS = [
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
]
_LOG4J = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""


class Peer(ABC):
    """One broker: a folder, and while it runs a process and a port."""

    name: ClassVar[str]
    home = REPOSITORY  # where it is started

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.log_file = folder / "broker.log"
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def prepare(self, port: int) -> None:
        """What comes before a start and is not part of it."""

    @abstractmethod
    def command(self, port: int) -> list[str]: ...

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise BenchError(f"{self.name} is not running")
        return self._process.pid

    def start(self, partitions: int = 0) -> float:
        """Start it; the seconds from the process's start to the first useful Metadata answer.

        With `partitions`, useful also means that so many partitions have a leader.
        """
        self.port = self.port or free_port()
        self.prepare(self.port)
        started = time.monotonic()
        self.spawn()
        self._wait_ready(started + START_TIMEOUT_S, partitions)
        return time.monotonic() - started

    def stop(self) -> float:
        """Ask it to end, then make it; the seconds it took. Does nothing when it is not running."""
        process, self._process = self._process, None
        if process is None:
            return 0.0
        started = time.monotonic()
        # The group, so that a start script's child goes too.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
        return time.monotonic() - started

    def kill(self) -> None:
        """End it as a crash would."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def spawn(self) -> None:
        """Start the process, and wait for nothing."""
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(self.port),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _wait_ready(self, deadline: float, partitions: int) -> None:
        while True:
            try:
                wait_for_metadata(self.port, min(deadline, time.monotonic() + 2), partitions)
                return
            except BenchError as error:
                self._fail_if_over(deadline, error)

    def _fail_if_over(self, deadline: float, error: BenchError) -> None:
        assert self._process is not None
        ended = self._process.poll() is not None
        if ended or time.monotonic() >= deadline:
            tail = " | ".join(self.log_file.read_text(errors="replace").splitlines()[-5:])
            what = "ended while starting" if ended else "did not start"
            raise BenchError(f"{self.name} {what}: {tail}") from error


class Mainstem(Peer):
    name = MAINSTEM

    def __init__(self, folder: Path, options: tuple[str, ...] = ()) -> None:
        super().__init__(folder)
        self._options = options

    def prepare(self, port: int) -> None:
        if not (self.home / "mainstem").exists():
            raise BenchError(f"there is no ./mainstem to start in {self.home}")

    def command(self, port: int) -> list[str]:
        settings = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
        where = ["--host", "127.0.0.1", "--port", str(port), "--data", str(self.data_dir)]
        return ["./mainstem", "up", *where, *settings, *self._options]


class Earlier(Mainstem):
    """Mainstem from another checkout, to see what a change costs."""

    name = EARLIER

    def __init__(self, folder: Path, home: Path) -> None:
        super().__init__(folder)
        self.home = home


class Kafka(Peer):
    name = KAFKA

    def prepare(self, port: int) -> None:
        properties = self.folder / "server.properties"
        if properties.exists():
            return
        (self.folder / "log4j2.properties").write_text(_LOG4J)
        properties.write_text(self._properties(port))
        self._tool("kafka.tools.StorageTool", "format", "-t", "bWFpbnN0ZW0tYmVuY2gtMQ", "-c", str(properties))

    def command(self, port: int) -> list[str]:
        return [*self._java(), *_JVM_OPTIONS, "kafka.Kafka", str(self.folder / "server.properties")]

    def _properties(self, port: int) -> str:
        controller_port = free_port()
        lines = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "log.dirs": str(self.data_dir),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            **SETTINGS,
        }
        return "".join(f"{key}={value}\n" for key, value in lines.items())

    def _java(self) -> list[str]:
        log4j = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        return [_java_command(), "-cp", f"{kafka_jars()}/*", log4j]

    def _tool(self, *arguments: str) -> None:
        done = subprocess.run(
            [*self._java(), *arguments], capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode != 0:
            raise BenchError(f"{arguments[0]} failed: {(done.stderr or done.stdout).strip()[-500:]}")


PEERS: dict[str, type[Peer]] = {peer.name: peer for peer in (Mainstem, Kafka)}


def kafka_jars() -> Path:
    folder = Path(os.environ.get("KAFKA_JARS") or REPOSITORY / ".peers" / f"kafka-{KAFKA_VERSION}")
    if not any(folder.glob(f"kafka_*-{KAFKA_VERSION}.jar")):
        raise BenchError(
            f"no Apache Kafka {KAFKA_VERSION} in {folder}: run ./test once, which fetches it, "
            "or set KAFKA_JARS to a folder with its jars"
        )
    return folder


def java_version() -> str:
    done = subprocess.run(
        [_java_command(), "-version"], capture_output=True, text=True, timeout=60, check=False
    )
    found = re.search(r'version "([^"]+)"', done.stderr)
    return found.group(1) if found else "unknown"


def _java_command() -> str:
    java = shutil.which("java")
    if java is None:
        raise BenchError("java is not installed: install a Java 17 runtime (Debian: openjdk-17-jre-headless)")
    return java
