"""Nodes of Apache Kafka with listeners and roles of the test's choice; the tests' shared one has neither.

A node lives until the session ends, or until the test ends it.
"""

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from mainstem.wire import Cluster, WireError, from_kafka_options
from tests.support.kafka_peer import KAFKA_VERSION, java, kafka_tool
from tests.support.shared import session_folder, start_guarded

_JARS = Path(__file__).parents[2] / ".peers" / f"kafka-{KAFKA_VERSION}"
_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xms128m", "-Xmx512m")
_START_TIMEOUT_SECONDS = 90


@dataclass
class KafkaNode:
    """One process; `port` is that of its listener without security."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def stop(self) -> None:
        """End it as an operator does: it hands its leaderships over first."""
        self.process.terminate()
        self.process.wait(60)


def start_node(cluster_id: str, port: int, settings: Mapping[str, str]) -> KafkaNode:
    """Start a node; it is up when `await_ready` says so."""
    folder = Path(mkdtemp(dir=session_folder(), prefix="node-"))
    given = {
        "log.dirs": str(folder / "data"),
        "controller.listener.names": "CONTROLLER",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        **settings,
    }
    properties = folder / "server.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
    kafka_tool("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties)).check()
    log = folder / "kafka.log"
    command = [java(), *_FLAGS, "-cp", f"{_JARS}/*", "kafka.Kafka", str(properties)]
    return KafkaNode(port, start_guarded(folder.name, command, log), log)


def new_cluster_id() -> str:
    return kafka_tool("kafka.tools.StorageTool", "random-uuid").check().strip()


def await_ready(node: KafkaNode, is_ready: Callable[[Cluster], bool]) -> None:
    """Returns when the node answers as it should."""
    options = from_kafka_options(
        {"bootstrap.servers": node.bootstrap_servers, "default.api.timeout.ms": "500"}
    )
    deadline = time.monotonic() + _START_TIMEOUT_SECONDS
    with Cluster(options) as cluster:
        while True:
            assert node.process.poll() is None, f"Apache Kafka ended:\n{node.log.read_text()}"
            assert time.monotonic() < deadline, f"Apache Kafka is not ready in time:\n{node.log.read_text()}"
            try:
                if is_ready(cluster):
                    return
            except WireError:
                pass
            time.sleep(0.05)
