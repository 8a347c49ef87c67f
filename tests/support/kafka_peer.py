"""Apache Kafka as the peer of the tests: its broker, one per test session, and its command-line tools.

Where Java or Kafka's jars are absent the tests fail with a line that says what to do; nothing is skipped.
"""

import json
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import MappingProxyType

from tests.support.shared import end_guarded, session_folder, session_lock, start_guarded
from tests.support.tool_server import PeerMissingError, ToolResult, ToolServer

KAFKA_VERSION = "4.3.0"
_ROOT = Path(__file__).parents[2]
JARS = _ROOT / ".peers" / f"kafka-{KAFKA_VERSION}"
# Short runs: no time for the optimising compiler, no threads for a collector that never runs.
_TOOL_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m", "-Xlog:disable")
# The loaded classes of one tool, mapped into the later ones: it halves their start.
_CLASS_ARCHIVE = JARS.parent / f"{JARS.name}.jsa"
_USE_CLASS_ARCHIVE = f"-XX:SharedArchiveFile={_CLASS_ARCHIVE}"
# The first does its last part while its process ends, the second leaves threads behind.
_OWN_PROCESS = ("VerifiableProducer", "org.apache.kafka.shell.MetadataShell")
_BROKER_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xms256m", "-Xmx512m")
_START_TIMEOUT_SECONDS = 90


@dataclass(frozen=True)
class KafkaPeer:
    """A running Apache Kafka broker."""

    bootstrap_servers: str
    log_dir: str


@cache
def java() -> str:
    path = shutil.which("java")
    if path is None:
        raise PeerMissingError("Java is not installed: run ./test, or install openjdk-17-jre-headless")
    if not JARS.is_dir():
        raise PeerMissingError(f"Apache Kafka {KAFKA_VERSION} is not in .peers/: run ./test, which gets it")
    return path


def program(name: str) -> str:
    """The path of a program from the system, e.g. kcat."""
    path = shutil.which(name)
    if path is None:
        raise PeerMissingError(f"{name} is not installed: run ./test, or install the package {name}")
    return path


def _full_name(class_name: str) -> str:
    if "." not in class_name or class_name.startswith(("consumer.", "reassign.")):
        return f"org.apache.kafka.tools.{class_name}"
    return class_name


def kafka_command(class_name: str, *arguments: str, archive_flag: str = _USE_CLASS_ARCHIVE) -> list[str]:
    """The command line of one of Kafka's own tools. A name without dots is under `org.apache.kafka.tools`."""
    name = _full_name(class_name)
    return [java(), *_TOOL_FLAGS, archive_flag, "-cp", f"{JARS}/*", name, *arguments]


def kafka_tool(
    class_name: str, *arguments: str, stdin: str | bytes = b"", timeout_seconds: float = 90
) -> ToolResult:
    """Run one of Kafka's own tools, or a program in a source file, to its end."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    if class_name not in _OWN_PROCESS:
        return _tool_server().run([_full_name(class_name), *arguments], data, timeout_seconds)
    command = kafka_command(class_name, *arguments)
    result = subprocess.run(command, input=data, capture_output=True, timeout=timeout_seconds, check=False)
    return ToolResult(result.returncode, result.stdout.decode(), result.stderr.decode())


@cache
def _tool_server() -> ToolServer:
    """The one of this process; it ends with it."""
    (tools,) = JARS.glob(f"kafka-tools-{KAFKA_VERSION}.jar")
    others = os.pathsep.join(str(jar) for jar in sorted(JARS.glob("*.jar")) if jar != tools)
    folder = Path(mkdtemp(dir=session_folder(), prefix="tools-"))
    source = str(Path(__file__).with_name("ToolServer.java"))
    return ToolServer([java(), *_TOOL_FLAGS, "-cp", others, source, str(tools), str(folder)], folder / "log")


def shared_kafka() -> KafkaPeer:
    """The session's Kafka broker, started by whoever asks first."""
    description = session_folder() / "kafka.json"
    with session_lock("kafka"):
        if not description.exists():
            peer = _start_kafka(session_folder() / "kafka", "kafka")
            _make_class_archive(peer)
            description.write_text(json.dumps(asdict(peer)))
        return KafkaPeer(**json.loads(description.read_text()))


def _make_class_archive(peer: KafkaPeer) -> None:
    if not _CLASS_ARCHIVE.exists():
        part = _CLASS_ARCHIVE.with_suffix(".part")
        part.unlink(missing_ok=True)
        arguments = ("TopicCommand", "--bootstrap-server", peer.bootstrap_servers, "--list")
        archive_flag = f"-XX:ArchiveClassesAtExit={part}"
        subprocess.run(kafka_command(*arguments, archive_flag=archive_flag), capture_output=True, check=True)
        part.rename(_CLASS_ARCHIVE)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


def start_own_kafka(settings: Mapping[str, str]) -> KafkaPeer:
    """A Kafka broker with settings of its own, for one test; it lives until the session ends."""
    folder = Path(mkdtemp(dir=session_folder(), prefix="kafka-"))
    return _start_kafka(folder / "kafka", folder.name, settings)


def end_own_kafka(peer: KafkaPeer, *, kindly: bool) -> None:
    """End a broker that `start_own_kafka` started: as an operator does, or with kill -9."""
    end_guarded(Path(peer.log_dir).parents[1].name, kindly=kindly)


def _start_kafka(
    folder: Path, name: str, own_settings: Mapping[str, str] = MappingProxyType({})
) -> KafkaPeer:
    folder.mkdir()
    broker_port, controller_port = _free_ports(2)
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker_port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(folder / "data"),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        **own_settings,
    }
    settings["controller.quorum.voters"] = f"{settings['node.id']}@127.0.0.1:{controller_port}"
    properties = folder / "server.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    cluster_id = kafka_tool("kafka.tools.StorageTool", "random-uuid").check().strip()
    # Eligible leader replicas say nothing on one node, and add a cluster-wide setting of their own.
    features = ("--feature", "eligible.leader.replicas.version=0")
    storage_tool = ("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties), *features)
    kafka_tool(*storage_tool).check()
    log = folder / "kafka.log"
    command = [java(), *_BROKER_FLAGS, "-cp", f"{JARS}/*", "kafka.Kafka", str(properties)]
    process = start_guarded(name, command, log)
    deadline = time.monotonic() + _START_TIMEOUT_SECONDS
    while not _answers_metadata(broker_port):
        assert process.poll() is None, f"Apache Kafka ended while starting:\n{log.read_text()}"
        assert time.monotonic() < deadline, f"Apache Kafka did not start in time:\n{log.read_text()}"
        time.sleep(0.1)
    return KafkaPeer(f"127.0.0.1:{broker_port}", str(folder / "data"))


def start_kafka_node(name: str, properties: Path) -> None:
    """Any node of Apache Kafka, for one test, whose directories are formatted; `end_guarded` ends it before
    the session does. What it says is in `kafka.log` beside the file.
    """
    log = properties.with_name("kafka.log")
    start_guarded(name, [java(), *_BROKER_FLAGS, "-cp", f"{JARS}/*", "kafka.Kafka", str(properties)], log)


def _answers_metadata(port: int) -> bool:
    """Whether the broker names at least one broker (itself) to a Metadata v1 request with no topics."""
    request = struct.pack(">hhihi", 3, 1, 1, -1, 0)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as sock:
            sock.sendall(struct.pack(">i", len(request)) + request)
            answer = sock.recv(65536)
    except OSError:
        return False
    return len(answer) >= 12 and struct.unpack_from(">i", answer, 8)[0] > 0
