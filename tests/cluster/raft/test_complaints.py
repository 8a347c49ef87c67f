"""What cannot work is said in a line that tells what to look at, and said once, not with every retry."""

import pytest

from mainstem.cluster.raft.voters import VoterSet
from tests.cluster.raft.nodes import Disk, World, cluster, replicated, static, voter


def _lines(caplog: pytest.LogCaptureFixture, text: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if text in record.getMessage()]


def test_a_quorum_that_cannot_be_reached(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.bootstrap = (1, 2, 3)
    disk = Disk()
    disk.format(VoterSet.of(voter(each) for each in (1, 2, 3)))
    world.start(1, disk=disk)
    world.run(30_000)
    (line,) = _lines(caplog, "has no leader")
    assert "node 1: " in line
    assert "the voters [2, 3] do not answer; it takes 2 of 3" in line


def test_an_observer_whose_bootstrap_servers_know_nothing(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.bootstrap = (1, 2)
    world.start(10, is_controller=False)
    world.run(30_000)
    (line,) = _lines(caplog, "knows who leads")
    assert "controller.quorum.bootstrap.servers" in line


def test_another_cluster(caplog: pytest.LogCaptureFixture) -> None:
    world = cluster(1)
    world.until(world.has_leader)
    world.start(10, is_controller=False, cluster_id="another")
    world.run(30_000)
    (line,) = _lines(caplog, "not of this cluster")
    assert "(another)" in line


def test_voters_that_disagree(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.start(1, static(1, 2, 3))
    world.start(4, static(1, 2, 4))
    world.run(10_000)
    assert any("the voters here are [1, 2, 3]" in line for line in _lines(caplog, "node 4 stands"))


def test_a_node_id_that_is_used_twice(caplog: pytest.LogCaptureFixture) -> None:
    world = cluster(1, 2, 3, dynamic=False)
    world.until(world.has_leader)
    replicated(world)
    twice = next(node.node_id for node in world.alive() if not node.raft.is_leader)
    # The second one replaces the first on the network of the test; both are alive to the leader.
    first = world.nodes.pop(twice)
    world.start(twice, static(1, 2, 3), Disk(number=1))
    world.run(100)
    assert first.is_alive
    assert any("two nodes have" in line for line in _lines(caplog, f"node {twice} fetches"))
