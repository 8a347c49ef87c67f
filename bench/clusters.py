"""Three nodes of one kind as a cluster, all of them controllers and brokers: `bench.peers` three times.

Mainstem and Apache Kafka get the same server.properties, but for the places of their data. Everything that is
counted is counted over all nodes together.
"""

import subprocess
import time

from bench import procfs
from bench.errors import BenchError
from bench.peers import SETTINGS, START_TIMEOUT_S, Kafka, Mainstem, Peer
from bench.wire import ask_metadata, free_port, leader_ports
from mainstem.local_cluster.settings import Plan, voters_of

NODES = 3
_CLUSTER_ID = "bWFpbnN0ZW0tYmVuY2gtMw"


class KafkaNode(Kafka):
    """One of several: its file says where the others are."""

    properties_text = ""

    def _properties(self, port: int) -> str:
        return self.properties_text


class MainstemNode(Mainstem):
    """The same, from the same file."""

    properties_text = ""

    def prepare(self, port: int) -> None:
        super().prepare(port)
        properties = self.folder / "server.properties"
        if properties.exists():
            return
        properties.write_text(self.properties_text)
        format_it = ["./mainstem", "storage", "format", "-t", _CLUSTER_ID, "-c", str(properties)]
        done = subprocess.run(
            format_it, cwd=self.home, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode != 0:
            raise BenchError(f"storage format failed: {(done.stderr or done.stdout).strip()[-500:]}")

    def command(self, port: int) -> list[str]:
        return ["./mainstem", "up", "--config", str(self.folder / "server.properties")]


class PeerCluster:
    """Nodes 1 to 3. `node(i)` is one of them, to be killed, stopped and started."""

    def __init__(self, kind: Peer, nodes: int = NODES) -> None:
        self.name = kind.name
        self.folder = kind.folder / "cluster"
        ids = range(1, nodes + 1)
        plan = Plan(
            "127.0.0.1",
            "bench",
            {node: free_port() for node in ids},
            {node: free_port() for node in voters_of(nodes)},
            {node: str(self.folder / f"node-{node}" / "data") for node in ids},
        )
        self.nodes: dict[int, KafkaNode | MainstemNode] = {}
        for node in ids:
            peer: KafkaNode | MainstemNode
            peer = (KafkaNode if isinstance(kind, Kafka) else MainstemNode)(self.folder / f"node-{node}")
            peer.home = kind.home
            peer.port = plan.ports[node]
            settings = plan.settings(node) | SETTINGS
            peer.properties_text = "".join(f"{key}={value}\n" for key, value in settings.items())
            self.nodes[node] = peer

    @property
    def first(self) -> Peer:
        """A way in, for whoever needs one address only."""
        return self.nodes[1]

    def start(self) -> float:
        """Start all at once; the seconds until Metadata names all of them everywhere."""
        for peer in self.nodes.values():
            peer.prepare(peer.port)
        started = time.monotonic()
        for peer in self.nodes.values():
            peer.spawn()
        self.await_nodes(list(self.nodes), started + START_TIMEOUT_S)
        return time.monotonic() - started

    def await_nodes(self, among: list[int], deadline: float) -> None:
        """Until each of these nodes names all of them as brokers."""
        for node in among:
            peer = self.nodes[node]
            while not _names(peer.port, len(among)):
                if time.monotonic() > deadline or not peer.runs:
                    tail = " | ".join(peer.log_file.read_text(errors="replace").splitlines()[-5:])
                    raise BenchError(f"node {node} of {self.name} did not start: {tail}")
                time.sleep(0.01)

    def leader_of(self, topic: str, partition: int) -> int:
        """The node that leads it."""
        port = leader_ports(self._any_port(), topic)[partition]
        return next(node for node, peer in self.nodes.items() if peer.port == port)

    def controller(self) -> int:
        """The active controller, which only the quorum can name."""
        from mainstem.wire import Cluster, from_kafka_options

        with Cluster(from_kafka_options({"bootstrap.servers": f"127.0.0.1:{self._any_port()}"})) as cluster:
            return cluster.describe_quorum().leader_id

    def cpu_seconds(self) -> float:
        return sum(procfs.cpu_seconds(peer.pid) for peer in self.nodes.values() if peer.runs)

    def resident_mb(self) -> float:
        return sum(procfs.memory(peer.pid).resident_mb for peer in self.nodes.values() if peer.runs)

    def remove(self) -> None:
        for peer in self.nodes.values():
            peer.kill()
        for peer in self.nodes.values():
            peer.remove()

    def _any_port(self) -> int:
        return next(peer.port for peer in self.nodes.values() if peer.runs)


def _names(port: int, brokers: int) -> bool:
    try:
        answer = ask_metadata(port, timeout_s=5.0)
    except OSError:
        return False
    return answer.is_useful and answer.brokers >= brokers
