"""Elections: who is elected, how fast, and that nobody is disturbed who need not be."""

import pytest

from mainstem.cluster.raft import effects, events
from mainstem.cluster.raft.quorum_state import QuorumState
from mainstem.cluster.raft.voters import VoterSet
from tests.cluster.raft.nodes import Disk, World, cluster, replicated, static, voter


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_quorum_of_one_leads_as_soon_as_its_first_record_is_durable(dynamic: bool) -> None:
    world = cluster(1, dynamic=dynamic)
    node = world.nodes[1]
    kinds = [type(effect) for effect in node.told]
    assert kinds == [effects.StoreQuorumState, effects.Append, effects.LeaderChanged]
    assert node.disk.state == QuorumState(1, 1)
    assert not node.raft.is_active
    world.until(lambda: node.raft.is_active)
    assert [type(effect) for effect in node.told[3:]] == [effects.HighWatermark, effects.BecameActive]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_three_nodes_that_start_together_elect_one_within_a_second(seed: int, dynamic: bool) -> None:
    world = cluster(1, 2, 3, seed=seed, dynamic=dynamic)
    assert world.until(world.has_leader) < 1000
    replicated(world)
    leader = world.leader()
    assert {node.raft.leader_id for node in world.alive()} == {leader.node_id}
    assert len({node.raft.epoch for node in world.alive()}) == 1


def test_two_of_three_are_enough_and_one_is_not() -> None:
    world = World()
    world.bootstrap = (1, 2, 3)
    for node_id in (1, 2):
        disk = Disk()
        disk.format(VoterSet.of(voter(each) for each in (1, 2, 3)))
        world.start(node_id, disk=disk)
        if node_id == 1:
            world.run(10_000)
            assert not world.has_leader()
            assert world.nodes[1].raft.epoch == 0, "a pre-vote raises no epoch"
    world.until(world.has_leader, 3000)
    replicated(world)


@pytest.mark.parametrize("seed", range(20))
def test_a_killed_leader_is_replaced_within_half_a_second(seed: int) -> None:
    world = cluster(1, 2, 3, seed=seed)
    world.until(world.has_leader)
    replicated(world)
    world.kill(world.leader().node_id)
    assert world.until(world.has_leader) < 500
    replicated(world)


@pytest.mark.parametrize("seed", range(10))
def test_five_nodes_lose_two_one_after_the_other(seed: int) -> None:
    world = cluster(1, 2, 3, 4, 5, seed=seed)
    for _ in range(2):
        world.until(world.has_leader)
        replicated(world)
        world.kill(world.leader().node_id)
    assert world.until(world.has_leader) < 2000
    replicated(world)


@pytest.mark.parametrize("seed", range(10))
def test_a_leader_that_stops_hands_over_at_once(seed: int) -> None:
    world = cluster(1, 2, 3, seed=seed)
    world.until(world.has_leader)
    replicated(world)
    leader = world.leader()
    leader.tell(events.Stop())
    world.until(lambda: bool(leader.of(effects.Finished)), 500)
    assert world.until(world.has_leader) < 500
    assert world.leader() is not leader
    assert leader.of(effects.Resigned)


def test_a_node_that_was_cut_off_comes_back_without_an_election() -> None:
    """Pre-vote: its epoch has not risen meanwhile."""
    world = cluster(1, 2, 3)
    world.until(world.has_leader)
    replicated(world)
    leader = world.leader()
    away = next(node for node in world.alive() if node is not leader)
    epoch = leader.raft.epoch
    world.isolate(away.node_id)
    world.run(30_000)
    assert away.raft.epoch == epoch
    world.cuts.clear()
    world.run(5_000)
    assert (world.leader(), leader.raft.epoch) == (leader, epoch)
    assert away.raft.leader_id == leader.node_id
    replicated(world)


def test_a_restarted_leader_asks_for_another_epoch() -> None:
    world = cluster(1, 2, 3)
    world.until(world.has_leader)
    replicated(world)
    leader = world.leader()
    epoch = leader.raft.epoch
    world.kill(leader.node_id)
    again = world.start(leader.node_id)
    assert (again.raft.role, again.raft.leader_id) == ("resigned", -1)
    world.until(world.has_leader)
    assert world.leader().raft.epoch > epoch
    replicated(world)


@pytest.mark.parametrize("seed", range(10))
def test_two_of_three_restart_and_the_leader_of_before_is_gone(seed: int) -> None:
    world = cluster(1, 2, 3, seed=seed)
    world.until(world.has_leader)
    replicated(world)
    gone = world.leader().node_id
    for node_id in (1, 2, 3):
        world.kill(node_id)
    for node_id in {1, 2, 3} - {gone}:
        world.start(node_id)
    assert world.until(world.has_leader) < 500


def test_a_leader_that_stops_while_the_others_are_gone_has_nothing_to_wait_for() -> None:
    world = cluster(1, 2, 3)
    world.until(world.has_leader)
    replicated(world)
    leader = world.leader()
    for node in world.alive():
        if node is not leader:
            world.kill(node.node_id)
    leader.tell(events.Stop())
    assert world.until(lambda: bool(leader.of(effects.Finished))) < 100


def test_all_nodes_restart() -> None:
    world = cluster(1, 2, 3, dynamic=False)
    world.until(world.has_leader)
    replicated(world)
    epoch = world.leader().raft.epoch
    for node_id in (1, 2, 3):
        world.kill(node_id)
    for node_id in (1, 2, 3):
        world.start(node_id, static(1, 2, 3))
    world.until(world.has_leader)
    assert world.leader().raft.epoch > epoch
    replicated(world)
