"""`Cluster()`: several nodes for the length of a block."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from mainstem.testing import BrokerError, Cluster
from tests.testing.test_process import is_gone

TOPIC = "t"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        for future in admin.create_topics([NewTopic(TOPIC, 3, 3)]).values():
            future.result(30)
        yield cluster


def send(cluster: Cluster, value: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    producer.produce(TOPIC, value=value)
    assert producer.flush(60) == 0


def test_it_takes_records_on_all_nodes(cluster: Cluster) -> None:
    send(cluster, "hello")
    assert {cluster.leader_of(TOPIC, partition) for partition in range(3)} == {1, 2, 3}
    assert cluster.controller() in cluster.node_ids
    assert cluster.bootstrap_servers.count(",") == 2


def test_another_node_leads_when_one_is_killed(cluster: Cluster) -> None:
    leader = cluster.leader_of(TOPIC, 0)
    cluster.kill(leader)
    assert cluster.running == [node for node in (1, 2, 3) if node != leader]
    assert cluster.leader_of(TOPIC, 0) != leader
    send(cluster, "without it")
    cluster.start(leader)
    assert cluster.running == [1, 2, 3]


def test_another_node_is_the_controller_when_one_is_stopped(cluster: Cluster) -> None:
    controller = cluster.controller()
    assert cluster.stop(controller) == 0
    assert cluster.controller() != controller
    cluster.start(controller)


def test_a_paused_node_is_passed_over(cluster: Cluster) -> None:
    leader = cluster.leader_of(TOPIC, 1)
    cluster.pause(leader)
    try:
        assert cluster.leader_of(TOPIC, 1) != leader
    finally:
        cluster.resume(leader)


def test_a_given_directory_stays(tmp_path: Path) -> None:
    with Cluster(1, data_dir=tmp_path / "data") as cluster:
        pid = cluster.pid(1)
        assert cluster.data_dir(1) == tmp_path / "data" / "node-1"
    assert is_gone(pid)
    assert (tmp_path / "data" / "node-1" / "meta.properties").exists()
    with Cluster(1, data_dir=tmp_path / "data") as cluster:
        assert cluster.running == [1]


def test_a_lost_disk_is_replaced_on_purpose_only() -> None:
    with Cluster(3) as cluster:
        cluster.kill(3)
        shutil.rmtree(cluster.data_dir(3))
        with pytest.raises(BrokerError, match=r"it is gone; .* use start\(3, format_data=True\)"):
            cluster.start(3)
        with pytest.raises(BrokerError, match="it is gone"):
            cluster.begin_start(3)
        assert cluster.running == [1, 2]
        cluster.start(3, format_data=True)
        assert cluster.running == [1, 2, 3]


def test_a_start_that_fails_ends_that_node_alone() -> None:
    with Cluster(2) as cluster:
        cluster.stop(2)
        meta = cluster.data_dir(2) / "meta.properties"
        kept = meta.read_text()
        meta.write_text(kept.replace("node.id=2", "node.id=7"))
        with pytest.raises(BrokerError, match="node 2 ended at once with exit code 1"):
            cluster.start(2)
        assert cluster.running == [1]
        meta.write_text(kept)
        assert cluster.start(2).running == [1, 2]


def test_a_refused_start_tells_why_and_leaves_nothing() -> None:
    with (
        pytest.raises(BrokerError, match=r"(?s)exit code 1.*num\.partitions"),
        Cluster(3, {"num.partitions": 0}),
    ):
        pass


def test_what_is_not_running_says_so() -> None:
    cluster = Cluster()
    with pytest.raises(BrokerError, match="not started"):
        _ = cluster.bootstrap_servers
    with pytest.raises(BrokerError, match="no node 4"):
        cluster.kill(4)
    with pytest.raises(BrokerError, match="not running"):
        cluster.stop(1)
    cluster.close()


def test_its_nodes_die_with_their_parent() -> None:
    program = (
        "import sys\n"
        "from mainstem.testing import Cluster\n"
        "cluster = Cluster(2).start_all()\n"
        "print(cluster.pid(1), cluster.pid(2), flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 60
    while not all(map(is_gone, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert os.getpid() not in pids
