"""What a cluster's directory remembers, and when it refuses."""

import json
import os
import shutil
import socket
from pathlib import Path

import pytest

from mainstem.local_cluster.directory import ClusterDirectory, ClusterDirectoryError
from mainstem.local_cluster.names import holds_a_cluster


def start(path: Path, nodes: int | None, first_port: int = 0) -> ClusterDirectory:
    """As a supervisor does it; nodes are formatted and have been up."""
    directory = ClusterDirectory(path)
    count = directory.open(nodes)
    directory.plan("127.0.0.1", first_port, count, "here")
    for node in directory.to_format():
        directory.data(node).mkdir(exist_ok=True)
        (directory.data(node) / "meta.properties").touch()
    directory.remember()
    for node in range(1, count + 1):
        directory.has_been_up(node)
    return directory


def test_controllers_keep_their_ports_and_the_cluster_its_id(tmp_path: Path) -> None:
    first = start(tmp_path, 3)
    plan = first.plan("127.0.0.1", 0, 3, "here")
    first.close()
    second = ClusterDirectory(tmp_path)
    assert second.open(None) == 3
    assert second.cluster_id == first.cluster_id
    assert second.plan("127.0.0.1", 0, 3, "here").controller_ports == plan.controller_ports
    assert second.to_format() == []
    second.close()
    assert holds_a_cluster(str(tmp_path))


def test_a_port_that_was_taken_meanwhile_is_replaced(tmp_path: Path) -> None:
    first = start(tmp_path, 1)
    taken = first.plan("127.0.0.1", 0, 1, "here").controller_ports[1]
    first.close()
    second = ClusterDirectory(tmp_path)
    second.open(1)
    with socket.create_server(("127.0.0.1", taken)):
        assert second.plan("127.0.0.1", 0, 1, "here").controller_ports[1] != taken
    second.close()


def test_nodes_may_be_added_and_the_voters_stay(tmp_path: Path) -> None:
    start(tmp_path, 3).close()
    larger = ClusterDirectory(tmp_path)
    larger.open(4)
    plan = larger.plan("127.0.0.1", 0, 4, "here")
    assert list(plan.controller_ports) == [1, 2, 3]
    assert plan.roles(4) == ("broker",)
    assert larger.to_format() == [4]
    larger.close()


def test_a_node_is_left_out_only_when_its_directory_is_gone(tmp_path: Path) -> None:
    start(tmp_path, 4).close()
    with pytest.raises(ClusterDirectoryError, match=r"cluster of 4 nodes, node 4 would be left out"):
        ClusterDirectory(tmp_path).open(3)
    shutil.rmtree(tmp_path / "node-4")
    smaller = ClusterDirectory(tmp_path)
    assert smaller.open(3) == 3
    smaller.close()


def test_lost_data_is_never_replaced_by_chance(tmp_path: Path) -> None:
    start(tmp_path, 3).close()
    shutil.rmtree(tmp_path / "node-2")
    directory = ClusterDirectory(tmp_path)
    directory.open(3)
    directory.plan("127.0.0.1", 0, 3, "here")
    with pytest.raises(
        ClusterDirectoryError, match=r"node 2 had data .* mainstem storage format --cluster-id"
    ):
        directory.to_format()
    # Formatted on purpose, it is as good as any.
    (tmp_path / "node-2").mkdir()
    (tmp_path / "node-2" / "meta.properties").touch()
    assert directory.to_format() == []
    directory.close()


def test_a_start_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    directory = ClusterDirectory(tmp_path)
    directory.open(3)
    directory.plan("127.0.0.1", 0, 3, "here")
    directory.remember()
    (tmp_path / "node-1").mkdir()
    (tmp_path / "node-1" / "meta.properties").touch()
    directory.close()
    again = ClusterDirectory(tmp_path)
    again.open(3)
    again.plan("127.0.0.1", 0, 3, "here")
    assert again.to_format() == [2, 3]
    again.close()


SOUND = {
    "version": 1,
    "cluster.id": "x",
    "nodes": 3,
    "controller.ports": {"1": 9, "2": 8, "3": 7},
    "formatted": [1],
}


@pytest.mark.parametrize("text", ["", "{}", "[]", "\xff"])
def test_a_damaged_memory_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(
        ClusterDirectoryError, match=r"cannot be understood .*; restore it from a copy, or start"
    ):
        ClusterDirectory(tmp_path).open(3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("version", 2),
        ("version", None),
        ("cluster.id", ""),
        ("cluster.id", 7),
        ("nodes", "3"),
        ("nodes", True),
        ("nodes", 0),
        ("nodes", 3.0),
        ("controller.ports", []),
        ("controller.ports", {}),
        ("controller.ports", {"one": 9}),
        ("controller.ports", {"0": 9}),
        ("controller.ports", {"1": 70000}),
        ("formatted", 1),
        ("formatted", ["1"]),
        ("formatted", [0]),
    ],
)
def test_each_thing_that_it_remembers_is_looked_at(tmp_path: Path, name: str, value: object) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps(SOUND | {name: value}))
    with pytest.raises(ClusterDirectoryError, match=f"cannot be understood .its {name} "):
        ClusterDirectory(tmp_path).open(3)


def test_a_memory_of_another_cluster_is_refused(tmp_path: Path) -> None:
    start(tmp_path, 3).close()
    (tmp_path / "cluster.json").write_text(json.dumps(SOUND))
    (tmp_path / "node-2" / "meta.properties").write_text("version=1\ncluster.id=y\nnode.id=2\n")
    with pytest.raises(
        ClusterDirectoryError, match=r"is of cluster x, and .*node-2 holds data of y; restore"
    ):
        ClusterDirectory(tmp_path).open(3)


def test_data_without_a_memory_is_refused(tmp_path: Path) -> None:
    start(tmp_path, 1).close()
    (tmp_path / "cluster.json").unlink()
    with pytest.raises(ClusterDirectoryError, match="has data, but"):
        ClusterDirectory(tmp_path).open(1)


def test_a_single_brokers_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").touch()
    with pytest.raises(ClusterDirectoryError, match="data of a single broker"):
        ClusterDirectory(tmp_path).open(3)


def test_two_supervisors_do_not_share_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainstem.local_cluster.directory._LOCK_WAIT_S", 0.0)
    first = start(tmp_path, 1)
    with pytest.raises(ClusterDirectoryError, match="running already"):
        ClusterDirectory(tmp_path).open(1)
    os.stat(first.lock_fd)
    first.close()
    start(tmp_path, 1).close()
