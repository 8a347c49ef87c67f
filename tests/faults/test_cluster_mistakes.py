"""Nodes of a cluster, each a `mainstem up --config` of its own, that were told something wrong or whose logs
do not fit together: each says so in a line, and nothing that was acknowledged is lost.
"""

import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mainstem.local_cluster.node_process import NodeProcess
from mainstem.local_cluster.settings import properties_text
from mainstem.protocol.uuids import random_uuid, uuid_to_text
from mainstem.records.batch import batch_size, iter_headers
from mainstem.testing import Cluster
from tests.faults.cluster_faults import SETTINGS, await_in_sync, differing_replicas
from tests.faults.cluster_load import SteadyLoad, make_topic
from tests.support.group_views import until
from tests.wire.ports import free_ports

pytestmark = pytest.mark.timeout(180)
START_SECONDS = 60
STOP_SECONDS = 5
OFFSET_BYTES = 8
COMBINED = "broker,controller"


class Started:
    """Nodes that are started by hand, from files; every one is ended with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster_id = uuid_to_text(random_uuid())
        self.ports = dict(zip(range(1, 5), free_ports(4), strict=True))
        self._running: dict[str, NodeProcess] = {}

    def voters(self, *node_ids: int) -> str:
        return ",".join(f"{node_id}@127.0.0.1:{self.ports[node_id]}" for node_id in node_ids)

    def start(
        self,
        node_id: int,
        voters: str,
        roles: str = COMBINED,
        *,
        name: str = "",
        cluster_id: str = "",
        settings: Mapping[str, str] | None = None,
    ) -> NodeProcess:
        """`name` tells nodes of one id apart."""
        name = name or str(node_id)
        listeners = ["PLAINTEXT://127.0.0.1:0"] if "broker" in roles else []
        if "controller" in roles:
            listeners.append(f"CONTROLLER://127.0.0.1:{self.ports[node_id]}")
        own = {
            **{key: str(value) for key, value in SETTINGS.items()},
            "process.roles": roles,
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": voters,
            "log.dirs": str(self.folder / f"node-{name}"),
            **(settings or {}),
        }
        file = self.folder / f"{name}.properties"
        file.write_text(properties_text(own))
        options = ["--config", str(file), "--format-as", cluster_id or self.cluster_id]
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = NodeProcess([*options, "--log-format", "text"], log.fileno())
        return self._running[name]

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def await_line(self, name: str, part: str) -> None:
        until(lambda: part in self.log(name), lambda: f"{part!r} in\n{self.log(name)}")

    def end(self) -> None:
        """All at once, in order, within the time that a person waits."""
        for process in self._running.values():
            if process.running:
                process.send_signal(signal.SIGTERM)
        codes = {name: process.end(signal.SIGTERM, STOP_SECONDS) for name, process in self._running.items()}
        for name in codes:
            assert "Traceback" not in self.log(name), self.log(name)
        assert -signal.SIGKILL not in codes.values(), f"had to be killed: {codes}"


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    nodes = Started(tmp_path)
    yield nodes
    nodes.end()


def test_a_quorum_that_cannot_be_reached(started: Started) -> None:
    started.start(1, started.voters(1, 2, 3))
    started.start(4, started.voters(2, 3), "broker")
    started.await_line("1", "the quorum has no leader, and the voters [2, 3] do not answer; it takes 2 of 3")
    started.await_line("1", f"waits for a controller to register with (of {started.voters(1).split(',')[0]}")
    started.await_line("4", "waits for a controller to register with")
    started.await_line("4", "no controller leads the quorum")
    started.start(2, started.voters(1, 2, 3)).await_ready(START_SECONDS)


def test_voters_that_disagree(started: Started) -> None:
    """Two agree, and begin without the third, which counts itself among others."""
    started.start(3, started.voters(2, 3))
    second = started.start(2, started.voters(1, 2))
    started.await_line(
        "2",
        "node 3 stands for election, but the voters here are [1, 2]: "
        "controller.quorum.voters differs between the nodes",
    )
    first = started.start(1, started.voters(1, 2))
    for process in (first, second):
        process.await_ready(START_SECONDS)


def test_an_advertised_address_that_others_cannot_reach(started: Started) -> None:
    first = started.start(1, started.voters(1))
    first.await_ready(START_SECONDS)
    (nobody,) = free_ports(1)
    advertised = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{nobody}"}
    second = started.start(2, started.voters(1), "broker", settings=advertised)
    second.await_ready(START_SECONDS)
    started.await_line(
        "2", f"clients are told to connect to 127.0.0.1:{nobody}, but this machine itself cannot"
    )
    started.await_line("2", "set advertised.listeners=PLAINTEXT://HOST:PORT to an address that clients can")
    make_topic(first.ready["bootstrap"], "spread", 2, 2)
    started.await_line("1", f"cannot follow broker 2: no answer from the broker at 127.0.0.1:{nobody}")


def test_a_wrong_cluster_id(started: Started) -> None:
    started.start(1, started.voters(1)).await_ready(START_SECONDS)
    started.start(2, started.voters(1), "broker", cluster_id=uuid_to_text(random_uuid()))
    started.await_line("2", "the node that was asked for the metadata log is not of this cluster")
    started.await_line("2", "waits for a controller to register with")


def test_a_node_id_that_is_used_twice(started: Started) -> None:
    started.start(1, started.voters(1)).await_ready(START_SECONDS)
    first = started.start(2, started.voters(1), "broker")
    first.await_ready(START_SECONDS)
    started.start(2, started.voters(1), "broker", name="twin")
    started.await_line("twin", "another node may have this node.id")
    assert first.running
    assert "another node" not in started.log("2")


def test_logs_that_end_too_late_and_too_early(tmp_path: Path) -> None:
    """A node that led has records that no other got, and a follower lost some that it had."""
    with Cluster(3, SETTINGS, data_dir=tmp_path / "cluster") as cluster:
        make_topic(cluster.bootstrap_servers, "apart", 1)
        load = SteadyLoad(cluster.bootstrap_servers, "apart", 1, 200, idempotent=True)
        load.await_acknowledged(300)
        longer = cluster.leader_of("apart", 0)
        shorter = next(node for node in cluster.node_ids if node != longer)
        for node, change in ((longer, _lengthen), (shorter, _shorten)):
            cluster.kill(node)
            change(cluster.data_dir(node) / "apart-0" / f"{0:020d}.log")
            load.await_acknowledged(100)
            cluster.start(node)
            await_in_sync(cluster)
        load.end()
        assert "apart-0" in _lines(cluster.log(longer), "truncating")
        assert "apart-0" in _lines(cluster.log(shorter), "a batch header is cut off")
        assert load.problems() == []
        for node in cluster.node_ids:
            cluster.stop(node)
        assert differing_replicas(cluster, ["apart"]) == []


def _lengthen(path: Path) -> None:
    """By copies of the last batch with later offsets, which recovery finds right."""
    data = path.read_bytes()
    at, header = list(iter_headers(data))[-1]
    last = data[at : at + batch_size(data, at)]
    with path.open("r+b") as file:
        file.seek(at + len(last))
        for _ in range(50):
            header = header._replace(base_offset=header.base_offset + header.last_offset_delta + 1)
            file.write(header.base_offset.to_bytes(OFFSET_BYTES) + last[OFFSET_BYTES:])


def _shorten(path: Path) -> None:
    """By its last batches, and a part of one."""
    data = path.read_bytes()
    at, _ = list(iter_headers(data))[-20]
    with path.open("r+b") as file:
        file.truncate(at + 5)


def _lines(log: str, word: str) -> str:
    return "\n".join(line for line in log.splitlines() if word in line)
