"""Harm that is done to a cluster of three nodes, one fault after another in an order of chance, and undone.

Each kind comes in every round. Which node is hit follows from who leads at that moment, so that a seed
repeats the kinds and their order, but not the timing of the machine.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from mainstem.testing import Cluster
from mainstem.wire import Cluster as Client
from mainstem.wire import from_kafka_options
from tests.faults.filesystems import SmallDisk
from tests.support.group_views import until

# What is missed after a second or two, so that a test need not wait for most of a minute.
SETTINGS = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "controller.quorum.fetch.timeout.ms": 1000,
    "replica.lag.time.max.ms": 3000,
}
_LONGER_THAN_A_SESSION_S = 4.0
_WATCHED = "__consumer_offsets"


class Faults:
    """`strike` does the next one, `heal` undoes it; between the two the cluster lives with it."""

    def __init__(
        self,
        cluster: Cluster,
        seed: int,
        topic: str,
        kinds: Sequence[str] | None = None,
        *,
        disk: SmallDisk | None = None,
    ) -> None:
        """`disk` is that of one of the nodes."""
        self.cluster = cluster
        self._random = Random(seed)
        self._topic = topic
        self._known: dict[str, Callable[[], None]] = {
            "kill the leader": lambda: self._kill(self._leader()),
            "kill the controller": lambda: self._kill(self.cluster.controller()),
            "kill the leader and the controller": lambda: self._kill(
                self._leader(), self.cluster.controller()
            ),
            "kill two of three": lambda: self._kill(*self._random.sample(self.cluster.node_ids, 2)),
            "kill all": lambda: self._kill(*self.cluster.node_ids),
            "stop the leader in order": lambda: self._stop(self._leader()),
            "stop the controller in order": lambda: self._stop(self.cluster.controller()),
            "pause the leader": lambda: self._pause(self._leader()),
            "pause the controller": lambda: self._pause(self.cluster.controller()),
        }
        self._kinds = list(kinds or self._known)
        # Only for who names them: the topic has to be there from the start, and so has the disk.
        self._known["move partitions"] = self._move_to_two
        if disk is not None:
            self._known["fill a disk"] = lambda: self._fill(disk)
        self._round: list[str] = []
        self._down: list[int] = []
        self._paused: list[int] = []
        self._moved = False
        self._ballast: Path | None = None

    @property
    def kinds(self) -> list[str]:
        return self._kinds

    def strike(self) -> str:
        """What was done."""
        if not self._round:
            self._round = self._random.sample(self._kinds, len(self._kinds))
        kind = self._round.pop()
        self._known[kind]()
        return f"{kind}: {self._down or self._paused}"

    def heal(self) -> None:
        """Start and wake what was hit, when all of it is back for clients, return."""
        if self._paused:
            time.sleep(_LONGER_THAN_A_SESSION_S)  # it is this long that is tested
        for node in self._paused:
            self.cluster.resume(node)
        for node in self._down:
            self.cluster.begin_start(node)
        self.cluster.await_ready(self._down)
        self._down, self._paused = [], []
        if self._ballast is not None:
            self._ballast.unlink()
            self._ballast = None
        if self._moved:
            self._place(len(self.cluster.node_ids))  # and the next fault comes while it is under way
            self._moved = False

    def linger(self) -> None:
        """Give the rest of the cluster a moment of chance with its loss."""
        time.sleep(self._random.uniform(0, 2))

    def _leader(self) -> int:
        return self.cluster.leader_of(self._topic, 0)

    def _kill(self, *nodes: int) -> None:
        self._down = sorted(set(nodes))
        for node in self._down:
            self.cluster.kill(node)

    def _stop(self, node: int) -> None:
        self._down = [node]
        code = self.cluster.stop(node)
        assert code == 0, f"node {node} ended with {code}"

    def _pause(self, node: int) -> None:
        self._paused = [node]
        self.cluster.pause(node)

    def _fill(self, disk: SmallDisk) -> None:
        self._ballast = disk.fill()

    def _move_to_two(self) -> None:
        self._place(2)
        self._moved = True

    def _place(self, copies: int) -> None:
        """Each partition of the topic on so many nodes of chance, the first of which is to lead it."""
        servers = from_kafka_options({"bootstrap.servers": self.cluster.bootstrap_servers})
        with Client(servers) as client:
            numbers = client.metadata([self._topic])[self._topic].partitions
            wanted = {
                (self._topic, number): self._random.sample(self.cluster.node_ids, copies)
                for number in numbers
            }
            refused = {
                where: refusal for where, refusal in client.alter_reassignments(wanted).items() if refusal
            }
        assert not refused, refused


def await_in_sync(cluster: Cluster, topics: Sequence[str] | None = None) -> None:
    """After a calm every partition has a leader, and all its replicas are in sync."""
    problems: list[str] = []

    def is_whole() -> bool:
        problems.clear()
        for name, topic in cluster.topics().items():
            if topics is None or name in topics:
                for number, part in topic.partitions.items():
                    if part.leader < 0 or set(part.isr) != set(part.replicas):
                        problems.append(f"{name}-{number} leader {part.leader} isr {part.isr}")
        return not problems

    until(is_whole, lambda: f"replicas to be in sync: {problems[:5]} of {len(problems)}")


def differing_replicas(cluster: Cluster, topics: Sequence[str], beside: str = "") -> list[str]:
    """Of a cluster that has been stopped: partitions whose replicas do not hold the same bytes. A node may
    have a second directory, with the name of the first and this behind it.
    """
    logs: dict[str, dict[int, bytes]] = {}
    for node in cluster.node_ids:
        directories = {cluster.data_dir(node), Path(f"{cluster.data_dir(node)}{beside}")}
        for folder in (folder for directory in directories for folder in directory.iterdir()):
            if folder.name.rpartition("-")[0] in topics:
                data = b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
                logs.setdefault(folder.name, {})[node] = data
    return [
        f"{name}: { ({node: len(data) for node, data in copies.items()}) }"
        for name, copies in sorted(logs.items())
        if len(set(copies.values())) > 1
    ]


class KillableCluster:
    """A cluster in the place of a single broker: to kill it is to do the next fault."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.faults = Faults(cluster, seed, _WATCHED)

    @property
    def bootstrap_servers(self) -> str:
        return self.faults.cluster.bootstrap_servers

    @property
    def log(self) -> str:
        cluster = self.faults.cluster
        return "\n".join(f"---- node {node}\n{cluster.log(node)}" for node in cluster.node_ids)

    def kill(self) -> None:
        self.faults.strike()
        self.faults.linger()

    def start(self) -> None:
        self.faults.heal()
